# What the rows above say, as bash asks for it. A row's fields are parted by tabs, an empty one is "-":
#   c COMMAND ARGUMENTS SUMMARY, o COMMAND LETTER OPTION VALUE HELP, v KIND NAME MEANING, a OLD COMMAND
# A command has one word or two, or, where an option chooses it, "analyze --table outcomes".

# Lookups are awk's: bash reads a pipe byte by byte.
_gepolab_find() { # PROGRAM COMMAND [WORD]: over the rows, with c the command and w the word
  _gepolab_rows | command awk -F '\t' -v c="$2" -v w="${3-}" "$1"
}

# The names of one kind: ALGORITHM, FIELD, FIELD:world.kind ...
_gepolab_names() {
  _gepolab_find '$1 == "v" && $2 == c {print $3}' "$1"
}

# The commands, or the second words of those that begin with the word given.
_gepolab_commands() {
  _gepolab_find '$1 != "c" {next} c == "" && $2 !~ / / {print $2}
    c != "" && index($2, c " ") == 1 {word = substr($2, length(c) + 2); if (word !~ / /) print word}' "$1"
}

# The command that the line's words begin with: an old word stands for its name now.
_gepolab_command() { # WORD...
  local command word
  command=$(_gepolab_find '$1 == "a" && $2 == c {print $3}' "$1")
  command=${command:-$1}
  while (($# > 2)); do
    shift
    for word in "$command $1" "$command $1 ${2-}" "$command ${1/=/ }"; do
      if (($# > 1)) && _gepolab_arguments "$word" >/dev/null; then command=$word; fi
    done
  done
  printf '%s' "$command"
}

# What a command's help calls the words after it; fails where there is no such command.
_gepolab_arguments() {
  _gepolab_find '$1 == "c" && $2 == c {print $3; found = 1; exit} END {exit !found}' "$1"
}

# The options of a command, long and short.
_gepolab_options() {
  _gepolab_find '$1 == "o" && $2 == c {print $4; if ($3 != "-") print $3} END {print "--help"}' "$1"
}

# What help calls the value of an option; fails where the command has none that takes one.
_gepolab_value_of() {
  _gepolab_find '$1 == "o" && $2 == c && $5 != "-" && ($3 == w || $4 == w) {print $5; found = 1; exit}
    END {exit !found}' "$1" "$2"
}

# Adds to COMPREPLY the words of standard input that begin with $1, each with $2 behind it.
_gepolab_offer() {
  local word
  while read -r word; do
    COMPREPLY+=("$word${2-}")
  done < <(command awk -v begin="$1" 'index($0, begin) == 1')
}

# Files whose names end in $2, and folders; all files where $2 is "".
_gepolab_files() {
  local path
  while IFS= read -r path; do
    if [[ -d $path || $path == *"$2" ]]; then COMPREPLY+=("$path"); fi
  done < <(compgen -f -- "$1")
  compopt -o filenames 2>/dev/null
}

_gepolab_folders() {
  local path
  while IFS= read -r path; do COMPREPLY+=("$path"); done < <(compgen -d -- "$1")
  compopt -o filenames 2>/dev/null
}

# key=value: $1 the command, $2 the word so far. bash takes the part behind the = for the word.
_gepolab_override() {
  local key=${2%%=*} kind=FIELD within=
  [[ $1 == policy ]] && kind=SETTING
  if [[ $kind == FIELD && $key == algorithm.* ]]; then kind=SETTING within=algorithm.; fi
  if [[ $2 != *=* ]]; then
    _gepolab_offer "${2#"$within"}" = < <(_gepolab_names "$kind")
    [[ -n $within ]] && COMPREPLY=("${COMPREPLY[@]/#/$within}")
    compopt -o nospace 2>/dev/null
  elif [[ $kind == FIELD && $key == algorithm ]]; then
    _gepolab_offer "${2#*=}" < <(_gepolab_names ALGORITHM)
  else
    _gepolab_offer "${2#*=}" < <(_gepolab_names "$kind:${key#"$within"}")
  fi
}

# What a word of help stands for: $1 the command, $2 that word, $3 what is typed so far.
_gepolab_offer_for() {
  case $2 in
  *=value) _gepolab_override "$1" "$3" ;;
  ALGORITHM | METRIC | TABLE | FIGURE | KIND) _gepolab_offer "$3" < <(_gepolab_names "$2") ;;
  FIELD) _gepolab_offer "$3" < <(_gepolab_names FIELD) ;;
  RECIPE)
    _gepolab_offer "$3" < <(_gepolab_names RECIPE)
    _gepolab_files "$3" .yaml
    ;;
  DIR | FOLDER | RESULTS) _gepolab_folders "$3" ;;
  STUDY) _gepolab_files "$3" .db ;;
  *.db | *.csv | *.html | *.yaml | *.json) _gepolab_files "$3" ".${2##*.}" ;;
  FILE | PROGRAM) _gepolab_files "$3" "" ;;
  *[A-Z]* | '') ;; # a number, or text that no table has
  *) [[ $2 == "$3"* ]] && COMPREPLY+=("$2") ;; # one of a few words, which help lists
  esac
}

# All that a phrase of help allows: "text|markdown", "RECIPE [key=value …]". An option in it and its
# value are offered elsewhere.
_gepolab_offer_phrase() {
  local word words skip= phrase=${2//[][|]/ }
  phrase=${phrase//…/}
  read -r -a words <<<"${phrase//.../}"
  for word in "${words[@]}"; do
    if [[ $word == -* ]]; then
      skip=1
    elif [[ -n $skip ]]; then
      skip=
    else
      _gepolab_offer_for "$1" "$word" "$3"
    fi
  done
}

_gepolab() {
  local line=${COMP_LINE:0:COMP_POINT} words last current before command value
  read -r -a words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  last=$((${#words[@]} - 1))
  current=${words[last]} before=${words[last - 1]} command=${words[1]}
  COMPREPLY=()
  if ((last == 1)); then
    _gepolab_offer "$current" < <(_gepolab_commands '' && printf '%s\n' help --help --version)
    return
  fi
  if [[ $command == help ]]; then
    ((last == 2)) && _gepolab_offer "$current" < <(_gepolab_commands '' && printf '%s\n' --man --completion)
    [[ $before == --completion ]] && _gepolab_offer "$current" < <(printf '%s\n' bash zsh)
    return
  fi
  ((last == 2)) && _gepolab_offer "$current" < <(_gepolab_commands "$command")
  command=$(_gepolab_command "${words[@]:1}")
  if [[ $current == --*=* ]] && value=$(_gepolab_value_of "$command" "${current%%=*}"); then
    _gepolab_offer_phrase "$command" "$value" "${current#*=}"
  elif [[ $before == -* ]] && value=$(_gepolab_value_of "$command" "$before"); then
    _gepolab_offer_phrase "$command" "$value" "$current"
  elif [[ $current == -* ]]; then
    _gepolab_offer "$current" < <(_gepolab_options "$command")
  else
    value=$(_gepolab_arguments "$command") && _gepolab_offer_phrase "$command" "$value" "$current"
  fi
}

complete -F _gepolab gepolab
