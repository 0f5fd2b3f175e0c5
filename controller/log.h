// One line a message on stderr: "<6>2026-11-29T18:12:59Z sandbox sbx_…: text" with the syslog level prefix that
// systemd reads (only when JOURNAL_STREAM is set; else the level's word: "… warning: text"). Library code below controller/ does not log. Never secrets, tokens,
// endpoints or runtime names. Text is made printable; at most 2 KiB a line; at most 200 lines in 10 s, the rest counted.
#pragma once
enum log_level { LOG_LEVEL_ERROR = 3, LOG_LEVEL_WARNING = 4, LOG_LEVEL_INFO = 6, LOG_LEVEL_DEBUG = 7 };
void log_set_level(enum log_level level);
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)
