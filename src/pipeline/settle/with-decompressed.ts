import { GatewayError, overloaded } from '../../base/errors.ts'
import type { MemoryBudget } from '../../base/memory-budget.ts'
import { decodeBody } from '../../proxy/client/read-body.ts'

const MAX_DECODED_BYTES = 64 * 1024 * 1024

/**
 * Decompresses a response to read its usage: many at once as long as there is memory, otherwise one after the other.
 * @param memoryLimit bytes that may be held in total, including this body @param read null = longer than 64 MB, interrupted or malformed
 */
export async function withDecompressed<T>(
  held: MemoryBudget, memoryLimit: number, body: Buffer, encoding: string,
  read: (decompressed: Buffer | null) => T | Promise<T>,
): Promise<T> {
  let reserved = 0
  const reserve = ({ length }: Buffer): void => {
    if (!held.reserve(length, memoryLimit)) throw overloaded('no memory is left to decompress a response')
    reserved += length
  }
  try {
    const decompressed = await decompress(body, encoding, reserve)
    if (decompressed !== 'no_memory') return await read(decompressed)
  } finally {
    held.release(reserved)
  }
  return held.runExclusive(async () => read(await decompress(body, encoding) as Buffer | null))
}

async function decompress(body: Buffer, encoding: string, reserve?: (chunk: Buffer) => void): Promise<Buffer | 'no_memory' | null> {
  try {
    return await decodeBody(body, encoding, MAX_DECODED_BYTES, reserve)
  } catch (error) {
    return error instanceof GatewayError && error.code === 'overloaded' ? 'no_memory' : null
  }
}
