# bash completion for profctl(1). Ids are asked of a daemon that runs; none is started.

# Only ids of harmless characters: compgen -W expands its words as the shell does.
_profctl_ids()
{
	profctl "${global[@]}" --no-start --json "$1" 2>/dev/null |
		sed -n "s/^{.*\"$2\":\"\{0,1\}\([A-Za-z0-9._:@%+=,-]\{1,\}\)\"\{0,1\}[,}].*/\1/p" 2>/dev/null
}

# Those that profd sends: no real-time ones. With SIG before them when that was begun.
_profctl_signals()
{
	local names
	names=$(compgen -A signal SIG | grep -Ev 'RT|JUNK')
	case $1 in
	S*) echo "$names" ;;
	*) echo "${names//SIG/}" ;;
	esac
}

# Keys and values of --svg; bash takes KEY=VALUE apart at the equals sign.
_profctl_svg()
{
	case $1 in
	order) echo "name weight" ;;
	layout) echo "icicle flame" ;;
	colors) echo "kind image name" ;;
	threads) echo "separate merged" ;;
	esac
}

_profctl()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local commands="record gpu launch ps resume stop signal output input capture captures wait show symbolize label pin unpin delete
		events daemon status doctor call"
	local common="--socket --json --no-start --color --help"
	local global=() command= at=1 options= words=
	COMPREPLY=()

	while ((at < COMP_CWORD)); do
		case ${COMP_WORDS[at]} in
		--socket | --color)
			# bash takes --socket=PATH apart at the equals sign
			[ "${COMP_WORDS[at]}" = --socket ] && global=(--socket "${COMP_WORDS[at + 1]}")
			((at += 2))
			;;
		-*) ((at += 1)) ;;
		*)
			command=${COMP_WORDS[at]}
			break
			;;
		esac
	done

	case $prev in
	--socket)
		COMPREPLY=($(compgen -f -- "$cur"))
		return
		;;
	--color)
		COMPREPLY=($(compgen -W "auto always never" -- "$cur"))
		return
		;;
	esac
	if [ -z "$command" ]; then
		COMPREPLY=($(compgen -W "$commands $common --version" -- "$cur"))
		return
	fi

	if [ "$prev" = = ] && [ "${COMP_WORDS[COMP_CWORD - 3]}" = --svg ]; then
		COMPREPLY=($(compgen -W "$(_profctl_svg "${COMP_WORDS[COMP_CWORD - 2]}")" -- "$cur"))
		return
	elif [ "$cur" = = ] && [ "${COMP_WORDS[COMP_CWORD - 2]}" = --svg ]; then
		COMPREPLY=($(compgen -W "$(_profctl_svg "$prev")"))
		return
	fi
	case $command:$prev in
	record:-o | record:--output | capture:-o | capture:--output | launch:--cwd | gpu:-o | gpu:--gpu-trace-output-directory)
		COMPREPLY=($(compgen -d -- "$cur"))
		return
		;;
	gpu:--settings)
		COMPREPLY=($(compgen -f -- "$cur"))
		return
		;;
	gpu:--api)
		COMPREPLY=($(compgen -W "vulkan gl" -- "$cur"))
		return
		;;
	gpu:--frame-by)
		COMPREPLY=($(compgen -W "auto present submit label: manual" -- "$cur"))
		return
		;;
	launch:--stdio)
		COMPREPLY=($(compgen -W "pipe null file pty" -- "$cur"))
		return
		;;
	record:--unwind | capture:--unwind | launch:--unwind)
		COMPREPLY=($(compgen -W "auto fp dwarf" -- "$cur"))
		return
		;;
	record:--svg | capture:--svg | launch:--svg)
		COMPREPLY=($(compgen -S = -W "title width_px min_share_ppm order layout colors threads" -- "$cur"))
		compopt -o nospace 2>/dev/null
		return
		;;
	stop:-s | stop:--signal)
		COMPREPLY=($(compgen -W "$(_profctl_signals "$cur")" -- "$cur"))
		return
		;;
	events:-b | events:--build)
		COMPREPLY=($(compgen -W "$(_profctl_ids ps build_id)" -- "$cur"))
		return
		;;
	events:-c | events:--capture)
		COMPREPLY=($(compgen -W "$(_profctl_ids captures capture_id)" -- "$cur"))
		return
		;;
	*:-F | *:--hz | *:-d | *:--duration | *:-l | *:--label | *:-g | *:--grace | *:-n | *:--count | *:--timeout | *:--since | *:--id | *:--env | *:--max-depth | \
		gpu:--gpu-trace-start-frame | gpu:--gpu-trace-end-frame | gpu:--frames | gpu:--device)
		return
		;;
	esac

	case $command in
	record) options="-F --hz -d --duration -o --output -k --kernel -l --label -q --quiet --unwind --max-depth --no-stitch --svg" ;;
	gpu) options="--gpu-trace-start-frame --gpu-trace-end-frame --frames -d --duration -o --gpu-trace-output-directory --frame-by --api --device --timeout --no-verify --settings -l --label -q --quiet" ;;
	launch) options="-f --follow -i --input --id --stdio --hold --profile -F --hz -d --duration --unwind --max-depth --no-stitch --svg --env --cwd --leave" ;;
	stop) options="-s --signal -g --grace -c --capture -d --discard" ;;
	output) options="-f --follow --stderr" ;;
	capture) options="-F --hz -d --duration -o --output -k --kernel -l --label -w --wait --pid --unwind --max-depth --no-stitch --svg" ;;
	wait) options="--last --timeout" ;;
	show | symbolize | label | pin | unpin) options="--last" ;;
	events) options="-b --build -c --capture --since -n --count" ;;
	daemon) options="--now --drain" ;;
	esac
	if [[ $cur == -* ]]; then
		COMPREPLY=($(compgen -W "$options $common" -- "$cur"))
		return
	fi

	case $command in
	record | gpu | launch)
		# Options end at the program: behind it the words are its own.
		COMPREPLY=($(compgen -c -f -- "$cur"))
		return
		;;
	signal)
		if ((COMP_CWORD == at + 1)); then
			words=$(_profctl_signals "$cur")
		else
			words=$(_profctl_ids ps build_id)
		fi
		;;
	stop)
		case " ${COMP_WORDS[*]} " in
		*" --capture "* | *" -c "*) words=$(_profctl_ids captures capture_id) ;;
		*) words=$(_profctl_ids ps build_id) ;;
		esac
		;;
	resume | output | input | capture) words=$(_profctl_ids ps build_id) ;;
	wait | show | symbolize | label | pin | unpin | delete) words=$(_profctl_ids captures capture_id) ;;
	daemon) words="start stop run status" ;;
	esac
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
}

complete -F _profctl profctl
