# Completions of chat2shell for bash: source <(chat2shell completion bash)
# What can be typed is asked of `chat2shell __complete`: a candidate a line, a tab and a word about it, and ":N" in the end.

_chat2shell()
{
    # bash takes words apart at ":" and "=" too; what no blank parts is one word again.
    local line=${COMP_LINE:0:COMP_POINT} words=() i word blank
    for ((i = 0; i <= COMP_CWORD; i++)); do
        blank=${line%%[![:space:]]*}
        line=${line#"$blank"}
        word=${COMP_WORDS[i]}
        ((i < COMP_CWORD)) || word=$line # up to the cursor
        line=${line#"$word"}
        if ((i == 0)) || [ -n "$blank" ]; then words+=("$word"); else words[-1]+=$word; fi
    done

    local program=${words[0]} current=${words[-1]} answer candidate directive
    [[ $program == "~/"* ]] && program=$HOME/${program#\~/}
    mapfile -t answer < <("$program" __complete "${words[@]:1}" 2>/dev/null)
    COMPREPLY=()
    ((${#answer[@]})) && [[ ${answer[-1]} == :+([0-9]) ]] || return 0
    directive=${answer[-1]#:}
    unset 'answer[-1]'

    # What stands behind the last ":" or "=" is what bash replaces.
    local kept=${current%"${current##*[:=]}"} tab=$'\t'
    for candidate in "${answer[@]}"; do
        if [ "$COMP_TYPE" = 63 ] && ((${#answer[@]} > 1)) && [[ $candidate == *$tab* ]]; then # they are listed only
            candidate="${candidate%%"$tab"*}  (${candidate#*"$tab"})"
        fi
        candidate=${candidate%%"$tab"*}
        COMPREPLY+=("${candidate#"$kept"}")
    done

    current=${current#"$kept"}
    ((directive & 2)) && compopt -o nospace 2>/dev/null
    if ((directive & 16)); then
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -d -- "$current")
    elif ! ((directive & 4)); then
        compopt -o filenames 2>/dev/null
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$current")
    fi
    return 0
}

shopt -s extglob
complete -F _chat2shell chat2shell
