import { workerData } from 'node:worker_threads'
import type { BlockingQuery, BlockingReply, BlockingThreadData } from './blocking-database.ts'
import { Database } from './database.ts'
import { DatabaseError } from './database-error.ts'

/** Type ids of int8, int2, int4 and numeric: https://github.com/postgres/postgres/blob/master/src/include/catalog/pg_type.dat */
const WHOLE_NUMBERS = new Set([20, 21, 23, 1700])
const DOUBLE = 701

const { options, port, replies } = workerData as BlockingThreadData
const database = new Database({
  ...options,
  types: { getTypeParser: (type: number) => (WHOLE_NUMBERS.has(type) ? wholeNumber : type === DOUBLE ? Number : String) },
})

port.on('message', async (query: BlockingQuery) => {
  port.postMessage(await run(query))
  Atomics.add(replies, 0, 1)
  Atomics.notify(replies, 0)
})

async function run({ sql, values, timeoutMs }: BlockingQuery): Promise<BlockingReply> {
  try {
    return { rows: await database.query(sql, values, timeoutMs) }
  } catch (error) {
    const { code, message, sqlState } = error instanceof DatabaseError ? error : new DatabaseError('rejected', String(error))
    return { error: { code, message, sqlState } }
  }
}

/** @returns a bigint for numeric values without a fraction too, because sums of bigint columns are numeric */
function wholeNumber(text: string): bigint | number {
  return /^-?\d+$/.test(text) ? BigInt(text) : Number(text)
}
