import { setFlagsFromString } from 'node:v8'

/** ms. The flags have no value for "never". */
const NEVER = 2 ** 31 - 1

/**
 * Sets the V8 flags of a process that runs for a long time. Call this after the start: V8 accepts node's compiled modules only with the
 * flags with which they were compiled, and would compile them again (bench/README.md). V8 reports an unknown flag on stderr.
 */
export function setServingFlags(): void {
  // V8's memory reducer collects an idle process eight seconds after the last collection, or half a minute after the start. It drops
  // compiled code, and the shapes of objects that do not exist at that moment: the next ten thousand requests cost twice as much.
  // `collectGarbageOfStart` collects the garbage of the start once. The reducer's timer may already run; each collection restarts the timer
  // and reads these flags. Node 26 added the second flag.
  setFlagsFromString(`--gc-memory-reducer-start-delay-ms=${NEVER}`)
  if (Number.parseInt(process.versions.node, 10) >= 26) setFlagsFromString(`--memory-reducer-delay-ms=${NEVER}`)
  // If most objects of an allocation site live long, V8 from then on allocates objects of this site in the old space. After a few hundred
  // long streams, all objects of many short requests would stay in memory until a full collection, which costs 1.4 times the CPU.
  setFlagsFromString('--no-allocation-site-pretenuring')
}
