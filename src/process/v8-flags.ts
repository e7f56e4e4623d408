import { setFlagsFromString } from 'node:v8'

/** Milliseconds: V8 knows no other way to say never. */
const NEVER = 2 ** 31 - 1

/**
 * Sets the flags of V8 for a process that serves for long, when its start is over. Node brings its own modules
 * compiled, and V8 takes such code only under the flags with which it was compiled: set before the start, they make V8
 * compile these modules again (bench/README.md).
 *
 * V8 says on stderr when it does not know a flag.
 */
export function setServingFlags(): void {
  leaveIdleAlone()
  keepNothingForOld()
}

/**
 * V8's memory reducer collects an idle process eight seconds after it last had to
 * collect, or half a minute after it started, and throws the compiled code away
 * with the shapes of objects that nobody has just then: the next ten thousand
 * requests cost twice as much. `collectGarbageOfStart` collects the garbage of the
 * start once. The reducer's clock may have been set going before; each collection
 * sets it anew, and reads these flags. The second came with Node 26.
 */
function leaveIdleAlone(): void {
  setFlagsFromString(`--gc-memory-reducer-start-delay-ms=${NEVER}`)
  if (Number.parseInt(process.versions.node, 10) >= 26) setFlagsFromString(`--memory-reducer-delay-ms=${NEVER}`)
}

/**
 * Where most of what a place in the program makes is there for long, V8 puts the
 * next that it makes there among the old, and asks no more whether that is right.
 * A few hundred long streams suffice, if they come before many short requests:
 * all that those make is kept until the next full collection, 1.4 times the CPU.
 */
function keepNothingForOld(): void {
  setFlagsFromString('--no-allocation-site-pretenuring')
}
