#compdef chat2shell
# Completions of chat2shell for zsh: source <(chat2shell completion zsh), behind `autoload -U compinit; compinit`
# What can be typed is asked of `chat2shell __complete`: a candidate a line, a tab and a word about it, and ":N" in the end.

_chat2shell()
{
    local -a answer plain open
    local line value directive
    answer=("${(@f)$(${(Q)words[1]} __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    [[ ${answer[-1]} == :<-> ]] || return 1
    directive=${answer[-1]#:}
    answer=("${(@)answer[1,-2]}")
    for line in $answer; do
        value=${${line%%$'\t'*}//:/\\:}
        [[ $line == *$'\t'* ]] && value+=:${line#*$'\t'}
        if (( directive & 2 )); then open+=("$value"); else plain+=("$value"); fi
    done
    (( $#open )) && _describe 'chat2shell' open -S ''
    (( $#plain )) && _describe 'chat2shell' plain
    if (( directive & 16 )); then
        compset -P '*='
        _files -/
    elif (( ! (directive & 4) )); then
        compset -P '*='
        _files
    fi
}

if [[ ${funcstack[1]} == _chat2shell ]]; then
    _chat2shell "$@" # an autoloaded file is the function's body
else
    compdef _chat2shell chat2shell
fi
