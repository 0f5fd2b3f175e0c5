# What the daemon runs inside a sandbox whose tool server is CodexPro: programs with supervisors, their output in files,
# and answers that survive CodexPro's masking. It is written once into a private directory of the sandbox and called as
#
#     /bin/bash -p DIRECTORY/run NONCE OPERATION ENCODING ARGUMENT…
#
# It answers on stdout: a line of words, then a line for each block of bytes (base64 without padding, or hex in pairs), then
# their length and CRC. Neither '=' nor ':' nor '-' behind letters is ever in an answer, so nothing in it looks like a secret.
# Needs bash, coreutils and util-linux.
set -u -o pipefail
D=${0%/*} NONCE=$1 OP=$2 ENC=b OUT= U=
[[ $OP != start && $OP != supervise_* ]] || U=$(umask) # the program's; each $() is a process more
umask 077
shift 2

# One line of words, then one line for each block of bytes; checked by length and CRC at the other end.
say() { OUT+="$*"$'\n'; }
# Last in a pipe: its process becomes the program.
encode() { if [[ $ENC == b ]]; then exec base64 -w 0; else od -An -v -tx1 | tr -d '\n'; fi; }
block() { # what encode made
    local text=${1%=}
    OUT+=${text%=}$'\n'
}
finish() {
    local crc len
    read -r crc len _ < <(exec cksum < <(printf %s "$OUT"))
    printf '\nc2s %s %sc2s %s end %s %s\n' "$NONCE" "$OUT" "$NONCE" "$crc" "$len"
    exit 0
}
answer() { say "$@"; finish; }
nap() { read -r -t "$1" -u 6 _; } # fd 6: a pipe that stays empty
put() { # FILE OFFSET BASE64: the same piece may come twice
    printf %s "$3" | base64 -d | dd of="$1" bs=65536 iflag=fullblock oflag=seek_bytes seek="$2" conv=notrunc status=none 2>/dev/null
}
number() { # FILE: sets REPLY
    local value=0
    read -r value _ 2>/dev/null <"$1"
    REPLY=$((10#${value:-0}))
}
# In place, so that a full disk cannot refuse it.
store() { printf '%020d %d\n' "$2" "${3-0}" 1<>"$1"; }
poke() { echo 1<>"$1"; }

# ---- streams: PREFIX.log with .base (first byte that is kept), .pos (first byte that was not read yet), .eof

stream_make() {
    mkfifo "$1.pipe" "$1.go" && : >"$1.log" && store "$1.base" 0 && store "$1.pos" 0
}
drop_older() { # PREFIX POSITION
    fallocate -p -o 0 -l "$2" "$1.log" 2>/dev/null
}
# Appends what comes. Over the bound: keep (the oldest goes), or wait (for the reader).
stream_write() { # PREFIX BOUND keep|wait COUNT
    local prefix=$1 bound=$2 how=$3 count=$4 size=0 new pos base=0 full status
    exec 4<>"$prefix.go"
    while :; do
        dd bs=65536 count="$count" of="$prefix.log" oflag=append conv=notrunc status=none 2>/dev/null
        status=$?
        new=$(stat -c %s "$prefix.log" 2>/dev/null)
        if ((${new:-0} < size)) || [[ ! -e $prefix.base ]]; then
            cat >/dev/null # its files were removed: the program goes on
            exit
        fi
        ((new == size && status == 0)) && break
        size=$new
        number "$prefix.pos"
        pos=$REPLY
        if ((status)); then # the disk is full: what is unread now would have a hole
            base=$size
            drop_older "$prefix" "$base"
            store "$prefix.base" "$base" 1
        elif [[ $how == keep ]] && ((size - (pos > base ? pos : base) > bound)); then
            base=$((size - bound))
            read -r _ full <"$prefix.base"
            store "$prefix.base" "$base" "$full"
            drop_older "$prefix" "$base"
        fi
        while [[ $how == wait ]] && ((size - pos > bound)); do
            read -r -u 4 _
            number "$prefix.pos"
            pos=$REPLY
        done
        while read -t 0 -u 4; do read -r -u 4 _; done
    done
    : >"$prefix.eof"
}
stream_note() { # PREFIX POSITION: everything before was read
    number "$1.pos"
    if (($2 - REPLY >= 262144)); then
        store "$1.pos" "$2"
        drop_older "$1" "$2"
        poke "$1.go"
    fi
}
# Says START SIZE LENGTH FULL, and leaves the bytes to stream_block.
stream_look() { # PREFIX POSITION MAX
    local base full
    size=$(stat -c %s "$1.log" 2>/dev/null) || size=0
    read -r base full <"$1.base"
    base=$((10#$base))
    start=$(($2 > base ? $2 : base))
    length=$((size - start < $3 ? size - start : $3))
    ((length > 0)) || length=0
    words="$start $size $length $full"
}
stream_block() { # PREFIX START LENGTH
    local bytes=
    (($3 == 0)) || bytes=$(dd if="$1.log" bs=65536 iflag=skip_bytes,count_bytes,fullblock skip="$2" count="$3" status=none 2>/dev/null | encode)
    block "$bytes"
}

# ---- the supervisor of one program

open_nap() { [[ -p $S/nap ]] || mkfifo "$S/nap" 2>/dev/null; exec 6<>"$S/nap"; }
tell() { echo "$*" 1<>"$S/ready"; }
close_own() { exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-; }
open_out() { exec 6<>"$1.pipe" 5<"$1.pipe" 7>"$1.pipe" 6<&-; } # for reading and for writing
become() { # the program itself: nothing of ours but its three streams
    close_own
    trap - TERM INT HUP USR1 USR2
    umask "$U"
    export -n SHLVL OLDPWD PWD
    exec setsid "$@"
}
is_settled() { # PREFIX FD: the writer has all, or nothing is in the pipe although somebody holds it open
    [[ -e $1.eof ]] || ! read -t 0 -u "$2"
}
settle() { # PREFIX:FD…
    local i calm=0 each all ended
    for ((i = 0; i < 300 && calm < 5; i++)); do
        all=1 ended=1
        for each; do
            is_settled "${each%:*}" "${each##*:}" || all=0
            [[ -e ${each%:*}.eof ]] || ended=0
        done
        ((ended)) && break
        ((calm = all ? calm + 1 : 0))
        nap 0.01
    done
}
await_child() { # sets code
    interrupted=1
    while ((interrupted)); do
        interrupted=0
        wait "$child"
        code=$?
    done
}
await_group() {
    until kill -0 -- "-$child" 2>/dev/null || ! kill -0 "$child" 2>/dev/null; do nap 0.005; done
    echo "$child" >"$S/pid.new" && mv "$S/pid.new" "$S/pid" && tell ok
}
end_in_time() { # MILLISECONDS
    nap "$(($1 / 1000)).$(printf %03d $(($1 % 1000)))"
    : >"$S/timed"
    kill -TERM -- "-$child"
    nap 2
    kill -KILL -- "-$child"
}
note_exit() { echo "$code" >"$S/exit.new" && mv "$S/exit.new" "$S/exit"; }
supervise() {
    trap 'interrupted=1' TERM INT HUP USR1 USR2
    exec 9>"$S/lock" && flock 9 && echo $$ >"$S/supervisor"
}
supervise_bash() { # TIMEOUT
    local command= killer=
    supervise && stream_make "$S/out" && open_out "$S/out" || { tell failed; exit 1; }
    IFS= read -r -d '' command <"$S/spec"
    { close_own; stream_write "$S/out" 67108864 keep 64; } <&5 &
    (become /bin/bash -lc "$command") >&7 2>&1 &
    child=$!
    exec 7>&-
    open_nap
    await_group
    if (($1)); then
        end_in_time "$1" 5<&- 9<&- &
        killer=$!
    fi
    await_child
    if [[ -e $S/timed ]]; then ((code == 137)) || code=124
    elif [[ $killer ]]; then kill -KILL "$killer"; fi
    settle "$S/out:5"
    note_exit
}
feed() { # to the program's input: pieces in their order
    local n=0
    trap '' PIPE
    exec 4<>"$S/in.go"
    while :; do
        until [[ -e $S/in.$n ]]; do read -r -u 4 _; done
        cat "$S/in.$n" 2>/dev/null || break
        rm -f "$S/in.$n"
        store "$S/in.fed" $((n + 1))
        [[ -e $S/in.$n.eof ]] && return
        ((n++))
    done
    : >"$S/in.broken"
}
launcher='shopt -s execfail
case $1 in */*) p=$1; [[ -e $p ]] || p= ;; *) p=$(type -P -- "$1") ;; esac
[[ $p ]] || { printf "%s: command not found\n" "$1" >&2; exit 127; }
export -n SHLVL OLDPWD PWD
exec -- "$@"
exit 126'
supervise_exec() {
    local spec feeder
    mapfile -d '' -t spec <"$S/spec"
    if [[ ${spec[0]} ]]; then
        [[ -e ${spec[0]} ]] || { tell missing; exit 1; }
        [[ -d ${spec[0]} ]] || { tell file; exit 1; }
        cd -- "${spec[0]}" || { tell denied; exit 1; }
    fi
    supervise && stream_make "$S/out" && stream_make "$S/err" && mkfifo "$S/in.pipe" "$S/in.go" && store "$S/in.fed" 0 || { tell failed; exit 1; }
    exec 6<>"$S/in.pipe" 3<"$S/in.pipe" 4>"$S/in.pipe" 6<&-
    { exec 1>&4; close_own; feed; } &
    feeder=$!
    exec 4>&-
    open_out "$S/out"
    { close_own; stream_write "$S/out" 1048576 wait 4; } <&5 &
    exec 6<>"$S/err.pipe" 8<"$S/err.pipe" 4>"$S/err.pipe" 6<&-
    { close_own; stream_write "$S/err" 1048576 wait 4; } <&8 &
    (become env -- "${spec[@]:2:spec[1]}" /bin/bash -pc "$launcher" bash "${spec[@]:2+spec[1]}") <&3 >&7 2>&4 &
    child=$!
    exec 3<&- 4>&- 7>&-
    open_nap
    await_group
    await_child
    kill -KILL "$feeder"
    : >"$S/in.broken"
    settle "$S/out:5" "$S/err:8"
    note_exit
}

# ---- operations

upload() { # ID OFFSET BASE64
    mkdir -p "$D/$1" && put "$D/$1/spec" "$2" "$3" || answer failed
    answer ok
}
start() { # ID bash|exec TIMEOUT OFFSET BASE64|-
    local told=
    S=$D/$1
    [[ -e $S/pid ]] && answer ok # this came before, and its answer was lost
    mkdir -p "$S" && rm -f "$S/ready" && mkfifo "$S/ready" || answer failed
    [[ $5 == - ]] || put "$S/spec" "$4" "$5" || answer failed
    exec 5<>"$S/ready"
    umask "$U"
    # The parentheses: what a shell starts with a plain & ignores SIGINT for ever.
    (exec setsid /bin/bash -p "$0" - "supervise_$2" "$S" "$3" </dev/null >/dev/null 2>&1 5>&-) &
    umask 077
    read -r -t 20 -u 5 told
    answer "${told:-failed}"
}
is_known() { [[ -e $S/pid ]] || answer unknown; }
awaited=
is_supervised() {
    local pid
    [[ ! $awaited ]] && read -r pid <"$S/supervisor" && kill -0 "$pid" 2>/dev/null && return
    ! flock -s -n "$S/lock" true
}
# The code first: what a program wrote before it ended is then in its streams.
look_exit() { # sets code and eof
    code=- eof=0
    is_known
    if [[ ! -e $S/exit ]] && ! is_supervised && [[ ! -e $S/exit ]]; then
        code=137 # somebody killed the supervisor
    fi
    [[ -e $S/exit ]] && read -r code <"$S/exit"
    [[ -e $S/out.eof ]] && eof=1
}
has_more() { # [PREFIX POSITION]…
    while (($#)); do
        (($(stat -c %s "$1.log" 2>/dev/null || echo 0) > $2)) && return
        shift 2
    done
    return 1
}
# Until the program ends or, with arguments, bytes come behind a position of a stream.
await() { # SECONDS [PREFIX POSITION]…
    local jobs=() each seconds=$1
    shift
    [[ -e $S/exit ]] || has_more "$@" && return
    awaited=1
    if [[ $# == 0 ]]; then
        flock -s -w "$seconds" "$S/lock" true >/dev/null 2>&1
        return
    fi
    set -m
    while (($#)); do
        { timeout --foreground 70 tail -c "+$(($2 + 1))" -s 0.1 -f "$1.log" 2>/dev/null | head -c 1; } </dev/null >/dev/null 2>&1 &
        jobs+=("-$!")
        shift 2
    done
    flock -s -w "$seconds" "$S/lock" true </dev/null >/dev/null 2>&1 &
    jobs+=("-$!")
    wait -n
    kill -KILL -- "${jobs[@]}" 2>/dev/null
    wait 2>/dev/null
    set +m
}
# One look at one or two streams. A position may be passed over while it is read, then again.
look() { # MAX PREFIX POSITION [PREFIX POSITION]
    local first second= words last start size length max most=$1
    look_exit
    [[ $ENC == b ]] || most=$((most < 30000 ? most : 30000)) # three letters a byte
    while :; do
        OUT= max=$most
        if (($# > 3)); then
            stream_look "$4" "$5" $((max / 2))
            second="$start $length" max=$((max - length)) last=$words
        fi
        stream_look "$2" "$3" "$max"
        first="$start $length"
        say ok "$code" "$eof" "$words" ${second:+"$last"}
        stream_block "$2" $first
        [[ ! $second ]] || stream_block "$4" $second
        number "$2.base"
        ((REPLY <= ${first% *})) && break
    done
    finish
}
read_bash() { # ID POSITION SEEN MAX none|output|exit SECONDS
    S=$D/$1
    is_known
    stream_note "$S/out" "$2"
    case $5 in
    output) await "$6" "$S/out" "$3" ;;
    exit) await "$6" ;;
    esac
    look "$4" "$S/out" "$2"
}
stop_bash() { # ID POSITION MAX
    S=$D/$1
    look_exit
    if [[ $code == - ]]; then
        setsid /bin/bash -p "$0" - end_group "$S" </dev/null >/dev/null 2>&1 &
        await 3.5
    fi
    look "$3" "$S/out" "$2"
}
end_group() {
    local child
    open_nap
    child=$(<"$S/pid")
    kill -TERM -- "-$child"
    nap 1.5
    kill -KILL -- "-$child"
}
read_exec() { # ID OUT ERR MAX SECONDS
    S=$D/$1
    is_known
    stream_note "$S/out" "$2"
    stream_note "$S/err" "$3"
    [[ $5 == 0 ]] || await "$5" "$S/out" "$2" "$S/err" "$3"
    look "$4" "$S/out" "$2" "$S/err" "$3"
}
write_exec() { # ID NUMBER 0|1 BASE64 SECONDS
    local until=$((SECONDS + $5))
    S=$D/$1
    is_known
    open_nap
    number "$S/in.fed"
    if ((REPLY <= $2)) && [[ ! -e $S/in.$2 ]]; then
        : >"$S/in.$2.new" && { [[ $4 == - ]] || put "$S/in.$2.new" 0 "$4"; } || answer failed
        (($3)) && : >"$S/in.$2.eof"
        mv "$S/in.$2.new" "$S/in.$2"
    fi
    poke "$S/in.go"
    while :; do
        number "$S/in.fed"
        ((REPLY > $2)) && answer fed
        [[ -e $S/in.broken ]] && answer broken
        ((SECONDS >= until)) && answer pending
        nap 0.02
    done
}
forget_bash() { # ID: it has ended
    rm -rf "${D:?}/$1"
    answer ok
}
signal_exec() { # ID NUMBER
    S=$D/$1
    is_known
    kill "-$2" -- "-$(<"$S/pid")" 2>/dev/null
    answer ok
}
end_any() { # ID
    S=$D/$1
    [[ ! -e $S/pid ]] || kill -KILL -- "-$(<"$S/pid")" 2>/dev/null
    [[ ! -e $S/supervisor ]] || kill -KILL -- "-$(<"$S/supervisor")" 2>/dev/null
    rm -rf "$S"
    answer ok
}
unsaved() {
    local git=(git --no-optional-locks -c safe.directory=* -c core.fsmonitor=false -c color.ui=false) changes commits
    export LC_ALL=C
    type -P git >/dev/null || answer none
    if ! changes=$("${git[@]}" status --porcelain 2>"$D/git.err" | wc -l); then
        grep -q 'not a git repository' "$D/git.err" && answer ok 0 0 0
    elif commits=$("${git[@]}" rev-list --count --branches --not --remotes 2>"$D/git.err"); then
        answer ok 1 "$changes" "${commits:-0}"
    fi
    say failed
    block "$(head -c 300 "$D/git.err" | encode)"
    finish
}
case $OP in
supervise_bash | supervise_exec | end_group) S=$1; shift; "$OP" "$@" ;;
*) ENC=$1; shift; "$OP" "$@" ;;
esac
