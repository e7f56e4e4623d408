import { GatewayError, overloaded } from '../../base/errors.ts'
import type { MemoryBudget } from '../../base/memory-budget.ts'
import { decodeBody } from '../../proxy/body.ts'

const MAX_DECODED_BYTES = 64 * 1024 * 1024

/**
 * Unpacks an answer that came compressed, and lets its usage be read. As long as
 * there is room this is done for many at once; where there is none it is their
 * turn one after the other, so that every one is read and they never fill the
 * memory together.
 *
 * @param memoryLimit bytes that may be held in all, this one included
 * @param read is given what it unpacks to, up to 64 MB of it being allowed; null:
 *   it is more, it was cut in the middle, or it is not what it says
 */
export async function withDecompressed<T>(
  held: MemoryBudget, memoryLimit: number, body: Buffer, encoding: string,
  read: (unpacked: Buffer | null) => T | Promise<T>,
): Promise<T> {
  let taken = 0
  const take = ({ length }: Buffer): void => {
    if (!held.reserve(length, memoryLimit)) throw overloaded('no room to unpack an answer')
    taken += length
  }
  try {
    const unpacked = await decompress(body, encoding, take)
    if (unpacked !== 'no_room') return await read(unpacked)
  } finally {
    held.release(taken)
  }
  return held.runExclusive(async () => read(await decompress(body, encoding) as Buffer | null))
}

async function decompress(
  body: Buffer, encoding: string, take?: (piece: Buffer) => void,
): Promise<Buffer | 'no_room' | null> {
  try {
    return await decodeBody(body, encoding, MAX_DECODED_BYTES, take)
  } catch (error) {
    return error instanceof GatewayError && error.code === 'overloaded' ? 'no_room' : null
  }
}
