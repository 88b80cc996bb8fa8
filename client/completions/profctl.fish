# fish completion for profctl(1). Ids are asked of a daemon that runs; none is started.

set -l commands record gpu launch ps resume stop signal output input capture captures wait show symbolize label pin unpin delete \
    events daemon status doctor call

function __profctl_ids
    profctl --no-start --json $argv[1] 2>/dev/null |
        string match -rg '"'$argv[2]'":"?([^"\\\\,}]*)'
end

function __profctl_builds
    __profctl_ids ps build_id
end

function __profctl_captures
    __profctl_ids captures capture_id
end

complete -c profctl -f
complete -c profctl -l socket -r -F -d "the daemon's socket"
complete -c profctl -l json -d 'records, events and errors as they came'
complete -c profctl -l no-start -d 'fail rather than start a daemon'
complete -c profctl -l color -x -a 'auto always never' -d 'colour of what is printed'
complete -c profctl -l help -s h -d 'tell how it is called'

set -l none "not __fish_seen_subcommand_from $commands"
complete -c profctl -n $none -l version -d 'print the version'
complete -c profctl -n $none -a record -d 'run a program in this terminal and profile it'
complete -c profctl -n $none -a gpu -d 'run a program in this terminal and record its GPU frames'
complete -c profctl -n $none -a launch -d 'let the daemon run a program'
complete -c profctl -n $none -a ps -d 'the programs that profd launched'
complete -c profctl -n $none -a resume -d 'let held programs run'
complete -c profctl -n $none -a stop -d 'end programs or captures'
complete -c profctl -n $none -a signal -d 'send a signal to programs'
complete -c profctl -n $none -a output -d 'what a program has written'
complete -c profctl -n $none -a input -d 'pass standard input on to a program'
complete -c profctl -n $none -a capture -d 'start to sample a program'
complete -c profctl -n $none -a captures -d 'the captures that are kept'
complete -c profctl -n $none -a wait -d 'wait for the end of a capture'
complete -c profctl -n $none -a show -d 'what became of a capture'
complete -c profctl -n $none -a symbolize -d 'make the names of a capture again'
complete -c profctl -n $none -a label -d 'label a capture'
complete -c profctl -n $none -a pin -d 'keep a capture whatever its age'
complete -c profctl -n $none -a unpin -d 'undo pin'
complete -c profctl -n $none -a delete -d 'delete captures'
complete -c profctl -n $none -a events -d 'print what happens'
complete -c profctl -n $none -a daemon -d 'start, stop or ask the daemon'
complete -c profctl -n $none -a status -d 'how the daemon does'
complete -c profctl -n $none -a doctor -d 'what will work here'
complete -c profctl -n $none -a call -d 'call any method'

for command in record launch capture
    complete -c profctl -n "__fish_seen_subcommand_from $command" -s F -l hz -x -d 'samples a second'
    complete -c profctl -n "__fish_seen_subcommand_from $command" -s d -l duration -x -d 'end after SECONDS'
end
for command in record launch capture
    complete -c profctl -n "__fish_seen_subcommand_from $command" -l unwind -x -a 'auto fp dwarf' -d 'how stacks are walked'
    complete -c profctl -n "__fish_seen_subcommand_from $command" -l max-depth -x -d 'frames of a stack that are kept'
    complete -c profctl -n "__fish_seen_subcommand_from $command" -l no-stitch -d 'leave long stacks cut'
    complete -c profctl -n "__fish_seen_subcommand_from $command" -l svg -x -d 'how the flame graph looks' \
        -a 'title= width_px= min_share_ppm= order=name order=weight layout=icicle layout=flame colors=kind colors=image colors=name threads=separate threads=merged'
end
for command in record capture
    complete -c profctl -n "__fish_seen_subcommand_from $command" -s o -l output -x -a '(__fish_complete_directories)' -d 'folder for the capture'
    complete -c profctl -n "__fish_seen_subcommand_from $command" -s k -l kernel -d 'show kernel frames'
    complete -c profctl -n "__fish_seen_subcommand_from $command" -s l -l label -x -d 'kept with the capture'
end
complete -c profctl -n '__fish_seen_subcommand_from gpu' -l gpu-trace-start-frame -x -d 'the first frame'
complete -c profctl -n '__fish_seen_subcommand_from gpu' -l gpu-trace-end-frame -x -d 'the last frame'
complete -c profctl -n '__fish_seen_subcommand_from gpu' -l frames -x -d 'so many from the first on'
complete -c profctl -n '__fish_seen_subcommand_from gpu' -s d -l duration -x -d 'so long from the first on'
complete -c profctl -n '__fish_seen_subcommand_from gpu' -s o -l gpu-trace-output-directory -x -a '(__fish_complete_directories)' -d 'folder for the capture'
complete -c profctl -n '__fish_seen_subcommand_from gpu' -l frame-by -x -a 'auto present submit label: manual' -d 'what a frame is'
complete -c profctl -n '__fish_seen_subcommand_from gpu' -l api -x -a 'vulkan gl' -d 'what the program uses'
complete -c profctl -n '__fish_seen_subcommand_from gpu' -l device -x -d 'the GPU, by name, index or uuid'
complete -c profctl -n '__fish_seen_subcommand_from gpu' -l timeout -x -d 'how long the first frame is waited for'
complete -c profctl -n '__fish_seen_subcommand_from gpu' -l no-verify -d 'do not have the document read'
complete -c profctl -n '__fish_seen_subcommand_from gpu' -l settings -r -F -d 'JSON with the settings'
complete -c profctl -n '__fish_seen_subcommand_from gpu' -s l -l label -x -d 'kept with the capture'
complete -c profctl -n '__fish_seen_subcommand_from record gpu' -s q -l quiet -d 'print nothing'
complete -c profctl -n '__fish_seen_subcommand_from record gpu launch' -a '(__fish_complete_subcommand)'
complete -c profctl -n '__fish_seen_subcommand_from launch output' -s f -l follow -d 'print what it writes'
complete -c profctl -n '__fish_seen_subcommand_from launch' -s i -l input -d 'pass standard input on'
complete -c profctl -n '__fish_seen_subcommand_from launch' -l id -x -d 'its name'
complete -c profctl -n '__fish_seen_subcommand_from launch' -l stdio -x -a 'pipe null file pty' -d 'where its output goes'
complete -c profctl -n '__fish_seen_subcommand_from launch' -l hold -d 'stop before it runs'
complete -c profctl -n '__fish_seen_subcommand_from launch' -l profile -d 'sample it'
complete -c profctl -n '__fish_seen_subcommand_from launch' -l env -x -d 'NAME=VALUE'
complete -c profctl -n '__fish_seen_subcommand_from launch' -l cwd -x -a '(__fish_complete_directories)' -d 'where it starts'
complete -c profctl -n '__fish_seen_subcommand_from launch' -l leave -d 'it outlives the daemon'
complete -c profctl -n '__fish_seen_subcommand_from stop' -s s -l signal -x -d 'what to end with'
complete -c profctl -n '__fish_seen_subcommand_from stop' -s g -l grace -x -d 'before it is killed'
complete -c profctl -n '__fish_seen_subcommand_from stop' -s c -l capture -d 'end captures'
complete -c profctl -n '__fish_seen_subcommand_from stop' -s d -l discard -d 'delete what was gathered'
complete -c profctl -n '__fish_seen_subcommand_from stop; and __fish_contains_opt -s c capture' -a '(__profctl_captures)'
complete -c profctl -n '__fish_seen_subcommand_from stop; and not __fish_contains_opt -s c capture' -a '(__profctl_builds)'
complete -c profctl -n '__fish_seen_subcommand_from output' -l stderr -d 'standard error'
complete -c profctl -n '__fish_seen_subcommand_from capture' -s w -l wait -d 'wait for its end'
complete -c profctl -n '__fish_seen_subcommand_from capture' -l pid -d 'it is a process id'
complete -c profctl -n '__fish_seen_subcommand_from resume signal output input capture' -a '(__profctl_builds)'
complete -c profctl -n '__fish_seen_subcommand_from wait show symbolize label pin unpin' -l last -d 'the newest capture'
complete -c profctl -n '__fish_seen_subcommand_from wait' -l timeout -x -d 'give up after SECONDS'
complete -c profctl -n '__fish_seen_subcommand_from wait show symbolize label pin unpin delete' -a '(__profctl_captures)'
complete -c profctl -n '__fish_seen_subcommand_from events' -s b -l build -x -a '(__profctl_builds)' -d 'of this build'
complete -c profctl -n '__fish_seen_subcommand_from events' -s c -l capture -x -a '(__profctl_captures)' -d 'of this capture'
complete -c profctl -n '__fish_seen_subcommand_from events' -l since -x -d 'first those after SEQ'
complete -c profctl -n '__fish_seen_subcommand_from events' -s n -l count -x -d 'end after so many'
complete -c profctl -n '__fish_seen_subcommand_from daemon' -a 'start stop run status'
complete -c profctl -n '__fish_seen_subcommand_from daemon' -l now -d 'kill its programs'
complete -c profctl -n '__fish_seen_subcommand_from daemon' -l drain -d 'let captures end'
