import { GatewayError, overloaded } from '../../base/errors.ts'
import type { HeldBytes } from '../../base/memory-budget.ts'
import { decodeBody } from '../../proxy/body.ts'

const MOST_DECODED = 64 * 1024 * 1024

/**
 * Unpacks an answer that came compressed, and lets its usage be read. As long as
 * there is room this is done for many at once; where there is none it is their
 * turn one after the other, so that every one is read and they never fill the
 * memory together.
 *
 * @param room bytes that may be held in all, this one included
 * @param read is given what it unpacks to, up to 64 MB of it being allowed; null:
 *   it is more, it was cut in the middle, or it is not what it says
 */
export async function withUnpacked<T>(
  held: HeldBytes, room: number, body: Buffer, encoding: string,
  read: (unpacked: Buffer | null) => T | Promise<T>,
): Promise<T> {
  let taken = 0
  const take = ({ length }: Buffer): void => {
    if (!held.take(length, room)) throw overloaded('no room to unpack an answer')
    taken += length
  }
  try {
    const unpacked = await unpack(body, encoding, take)
    if (unpacked !== 'no_room') return await read(unpacked)
  } finally {
    held.give(taken)
  }
  return held.inTurn(async () => read(await unpack(body, encoding) as Buffer | null))
}

async function unpack(
  body: Buffer, encoding: string, take?: (piece: Buffer) => void,
): Promise<Buffer | 'no_room' | null> {
  try {
    return await decodeBody(body, encoding, MOST_DECODED, take)
  } catch (error) {
    return error instanceof GatewayError && error.code === 'overloaded' ? 'no_room' : null
  }
}
