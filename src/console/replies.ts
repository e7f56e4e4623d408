import { Readable } from 'node:stream'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import type { MountHost } from '../pipeline/parts/mount.ts'
import { ConsoleProblem, codeOf } from './http/console-problem.ts'
import type { CsvFile } from './reports/csv.ts'
import { ReportError } from './reports/report-error.ts'
import { ConsoleStoreError } from './store/console-store-client.ts'

const RETRY_AFTER_SECONDS = 5

/** Sends CSV. An error in the query is thrown before the first byte. @param onFirst called when the first piece is ready */
export async function sendCsv(reply: FastifyReply, { name, pieces }: CsvFile, onFirst: () => void): Promise<FastifyReply> {
  const iterator = pieces[Symbol.asyncIterator]()
  const first = await iterator.next()
  onFirst()
  async function* all() {
    if (first.done !== true) yield first.value
    yield* { [Symbol.asyncIterator]: () => iterator }
  }
  return reply.type('text/csv; charset=utf-8').header('content-disposition', `attachment; filename="${name}.csv"`)
    .send(Readable.from(all()))
}

/** Sends a problem. Problems that an operator must look at are logged. */
export function sendProblem(host: MountHost, thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const problem = problemOf(thrown)
  const { log, accounts } = host.current()
  const passes = thrown instanceof ReportError && thrown.code === 'not_yet'
  const isFault = problem.code === 'internal' || (problem.code === 'unavailable' && accounts.ledger !== null && !passes)
  const { method, routeOptions: { url } } = request
  if (isFault) log.error({ err: thrown, method, path: url }, 'the console failed')
  if (problem.retryAfter !== null) void reply.header('retry-after', String(problem.retryAfter))
  const { statusCode } = thrown as Partial<FastifyError>
  const status = problem.code === 'bad_request' && statusCode !== undefined ? statusCode : problem.status
  return reply.code(status).type('application/json; charset=utf-8').serializer(JSON.stringify).send(problem.body)
}

function problemOf(thrown: unknown): ConsoleProblem {
  if (thrown instanceof ConsoleProblem) return thrown
  if (thrown instanceof ReportError) {
    const { code, message, field } = thrown
    if (code === 'not_yet') return new ConsoleProblem('unavailable', message, { retryAfter: RETRY_AFTER_SECONDS })
    return new ConsoleProblem(code, message, field === null ? {} : { field })
  }
  if (thrown instanceof ConsoleStoreError) {
    if (thrown.code === 'unreachable' || thrown.code === 'timeout') {
      const outcome = thrown.code === 'timeout' ? 'Look whether the change was stored.' : 'Nothing was changed.'
      return new ConsoleProblem('unavailable', `PostgreSQL cannot be reached. ${outcome}`, { retryAfter: RETRY_AFTER_SECONDS })
    }
    return new ConsoleProblem('unavailable', 'The console store cannot be read or written. See the gateway log.')
  }
  const { statusCode, message } = thrown as Partial<FastifyError>
  if (statusCode !== undefined && statusCode < 500) {
    return new ConsoleProblem(codeOf(statusCode), message ?? 'The request is invalid.')
  }
  return new ConsoleProblem('internal', 'Internal error. See the gateway log.')
}
