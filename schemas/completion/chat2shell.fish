# Completions of chat2shell for fish: chat2shell completion fish | source
# What can be typed is asked of `chat2shell __complete`: a candidate a line, a tab and a word about it, and ":N" in the end.

function __chat2shell_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l answer ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
    string match -qr '^:[0-9]+$' -- "$answer[-1]"
    or return
    set -l directive (string sub -s 2 -- $answer[-1])
    set -e answer[-1]
    if test (count $answer) -gt 0
        printf '%s\n' $answer
    end
    set -l bare (string replace -r '^--[a-z-]+=' '' -- "$current")
    set -l before (string match -r '^--[a-z-]+=' -- "$current")
    if test (math "bitand($directive, 16)") -ne 0
        for path in (__fish_complete_directories "$bare" '')
            echo "$before$path"
        end
    else if test (math "bitand($directive, 4)") -eq 0
        for path in (__fish_complete_path "$bare")
            echo "$before$path"
        end
    end
end

complete -c chat2shell -e
complete -c chat2shell -f -a '(__chat2shell_complete)'
