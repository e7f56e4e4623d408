import { setFlagsFromString } from 'node:v8'

/** ms; V8 has no other way to say never. */
const NEVER = 2 ** 31 - 1

/**
 * Sets the V8 flags of a long-running process. Call it after the start: V8 accepts node's compiled modules only under the flags
 * of their compilation, and would compile them again (bench/README.md). V8 reports an unknown flag on stderr.
 */
export function setServingFlags(): void {
  // V8's memory reducer collects an idle process eight seconds after its last collection, or half a minute after its start. It
  // drops compiled code, and the shapes of objects that do not exist at that moment: the next ten thousand requests cost twice as
  // much. `collectGarbageOfStart` collects the garbage of the start once. The reducer's timer may already be running; each
  // collection restarts it and reads these flags. The second flag came with Node 26.
  setFlagsFromString(`--gc-memory-reducer-start-delay-ms=${NEVER}`)
  if (Number.parseInt(process.versions.node, 10) >= 26) setFlagsFromString(`--memory-reducer-delay-ms=${NEVER}`)
  // If most objects of an allocation site live long, V8 allocates the next ones there in the old space permanently. After a few
  // hundred long streams, all objects of many short requests would stay until a full collection, which costs 1.4 times the CPU.
  setFlagsFromString('--no-allocation-site-pretenuring')
}
