#!/usr/bin/python3
"""What RenderDoc's own Python module finds in a document of Vulkan, as JSON. It replays it, so the driver that recorded it must be here.

    /usr/bin/python3 inspect_rdc.py DOCUMENT GROUP THREAD

{"events": [[LABEL…, CALL]…], "buffers": [HEX…], "step": {"steps": N, "values": {NAME: [NUMBER…]}, "files": {NAME: TEXT},
     "lines": [[NAME, LINE]…]}}

events: the calls that draw, dispatch or copy, each behind the labels around it. buffers: what the storage buffer of each dispatch holds behind
it. step: one thread of the first dispatch, by the number of its group and its own in it: the values that each of its variables has, one after
the other; the source that its module carries, and the lines of it that the thread goes through, a line in which it stays once.
"""
import json
import sys

import renderdoc as rd

WORK = rd.ActionFlags.Dispatch | rd.ActionFlags.Drawcall | rd.ActionFlags.Copy | rd.ActionFlags.Clear
STEPS_MAX = 100000


def open_document(path):
    rd.InitialiseReplay(rd.GlobalEnvironment(), [])
    document = rd.OpenCaptureFile()
    result = document.OpenFile(path, "", None)
    if result != rd.ResultCode.Succeeded:
        sys.exit("%s cannot be opened: %s" % (path, result))
    result, controller = document.OpenCapture(rd.ReplayOptions(), None)
    if result != rd.ResultCode.Succeeded:
        sys.exit("%s cannot be replayed: %s" % (path, result))
    return document, controller


def walk(actions, file, labels=()):
    """(action, the labels around it) for each that works."""
    for action in actions:
        if action.flags & WORK:
            yield action, labels
        is_label = action.flags & rd.ActionFlags.PushMarker and action.flags & rd.ActionFlags.CommandBufferBoundary == 0
        yield from walk(action.children, file, (*labels, action.GetName(file)) if is_label else labels)


def buffer_behind(controller, action):
    controller.SetFrameEvent(action.eventId, True)
    bound = controller.GetPipelineState().GetReadWriteResources(rd.ShaderStage.Compute)
    return bytes(controller.GetBufferData(bound[0].resources[0].resourceId, 0, 0)).hex()


def step(controller, action, group, thread):
    controller.SetFrameEvent(action.eventId, True)
    trace = controller.DebugThread((group, 0, 0), (thread, 0, 0))
    if trace.debugger is None:
        sys.exit("the thread cannot be stepped")
    steps, values, lines = 0, {}, []
    files = controller.GetPipelineState().GetShaderReflection(rd.ShaderStage.Compute).debugInfo.files
    places = {place.instruction: place.lineInfo for place in trace.instInfo}
    states = controller.ContinueDebug(trace.debugger)
    while states and steps < STEPS_MAX:
        for state in states:
            steps += 1
            place = places.get(state.nextInstruction)
            if place is not None and place.lineStart > 0 and place.fileIndex >= 0:
                # RenderDoc 1.24 counts the files of OpSource from 1, those of DebugSource from 0.
                at = [files[min(place.fileIndex, len(files) - 1)].filename, place.lineStart]
                lines += [at] if lines[-1:] != [at] else []
            for change in state.changes:
                known = values.setdefault(change.after.name, [])
                is_number = change.after.type == rd.VarType.UInt and change.after.columns == 1
                # A variable that is read is told of too.
                if is_number and known[-1:] != [change.after.value.u32v[0]]:
                    known.append(change.after.value.u32v[0])
        states = controller.ContinueDebug(trace.debugger)
    controller.FreeTrace(trace)
    return {"steps": steps, "values": values, "files": {file.filename: file.contents for file in files}, "lines": lines}


def main(path, group, thread):
    document, controller = open_document(path)
    file = controller.GetStructuredFile()
    found = list(walk(controller.GetRootActions(), file))
    dispatches = [action for action, _ in found if action.flags & rd.ActionFlags.Dispatch]
    told = {
        "events": [[*labels, action.GetName(file)] for action, labels in found],
        "buffers": [buffer_behind(controller, action) for action in dispatches],
        "step": step(controller, dispatches[0], group, thread),
    }
    json.dump(told, sys.stdout)
    sys.stdout.flush()
    controller.Shutdown()
    document.Shutdown()
    rd.ShutdownReplay()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
