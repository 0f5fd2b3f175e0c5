// The framing of `exec` and `port-forward` over a connection that has left HTTP (Upgrade: chat2shell-stream): one byte of type,
// three of length (big-endian), then that many bytes, at most FRAME_MAX_BYTES. Both ends read it strictly: what is not in
// the table of frames.c, or has another length than its type takes, ends the connection.
//
// exec, client to daemon:  DATA stdin, END its end, RESIZE, SIGNAL
//       daemon to client:  DATA stdout (or the terminal), ERRORS stderr, TAKEN, END nothing is read from stdin any more;
//                          last EXIT or FAILED
// Of DATA the client may have sent STREAM_WINDOW_BYTES more than TAKEN has told, so that no frame is stuck behind input that
// nobody reads. In the other direction the socket holds back whoever writes.
// port-forward:            DATA and END in either direction; FAILED (daemon) when the connection inside broke
#pragma once
#include "controller/base/buffer.h"
#include "controller/base/error.h"
#include <stddef.h>
#include <stdint.h>

#define STREAM_PROTOCOL "chat2shell-stream"
#define STREAM_WINDOW_BYTES (512 * 1024)
#define FRAME_HEAD_BYTES 4
#define FRAME_MAX_BYTES (64 * 1024)
#define FRAME_FAILED_MAX_BYTES (8 * 1024)

enum frame_type {
    FRAME_DATA,
    FRAME_ERRORS,
    FRAME_END,    // empty
    FRAME_RESIZE, // columns, rows: two bytes each
    FRAME_SIGNAL, // its number, one byte
    FRAME_TAKEN,  // so many bytes of DATA more: four bytes
    FRAME_EXIT,   // exit code, one byte
    FRAME_FAILED, // a Status as JSON
    FRAME_TYPE_COUNT
};
struct frame {
    enum frame_type type;
    const char *bytes; // into what was read
    size_t len;
};

// Reads the frame at the front. 1: *ret, which takes *ret_size bytes in all. 0: more bytes are needed. -1: it is no frame.
int frame_read(const char *bytes, size_t len, struct frame *ret, size_t *ret_size, struct error *err);
// Appends bytes of a type that has any number of them, in as many frames as they need. -1: no room (nothing is appended).
int frame_append(struct buffer *out, enum frame_type type, const void *bytes, size_t len);
size_t frame_size(size_t len); // of such bytes with their heads
// Numbers as they stand in frames. size: 1, 2 or 4 bytes.
int frame_append_number(struct buffer *out, enum frame_type type, uint32_t value, size_t size);
int frame_append_size(struct buffer *out, uint16_t columns, uint16_t rows);
uint32_t frame_number(const char *bytes, size_t size);
