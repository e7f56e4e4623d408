import t from 'tap'
import type { TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { API } from '../../../src/console/api/api.ts'
import { RequestDetails } from '../../../src/console/api/logs.ts'
import { FirstByte, Figures } from '../../../src/console/api/shapes.ts'
import { DAY, filled, iso, NOW, withReports } from '../reports/filled.ts'
import { NOTHING_USED, row } from '../../ledger/rows.ts'

t.test('each report matches its schema in the API, for console users and for holders of keys', async t => {
  const file = filled(t.testdir(), [
    row('a', {
      startedAt: NOW - 1000, upstreamProtocol: 'messages', user: 'u1', tags: { project: 'alpha' }, billed: 'client',
      attempts: [{ upstream: 'openai', model: 'm', translated: 'chat->messages', dropped: ['seed'], outcome: 'ok', ms: 3, status: 200 }],
    }),
    row('b', {
      startedAt: NOW - 2000, key: null, model: null, upstream: null, upstreamModel: null, attempts: [],
    }),
    row('c', {
      startedAt: NOW - DAY,
      usage: NOTHING_USED,
      costPico: null,
      price: null,
      priceVersion: null,
      firstByteMs: null,
      durationMs: null,
      status: null,
      protocol: null,
      endpoint: null,
      end: 'error',
      error: 'internal',
      source: 'none',
      route: null,
    }),
    row('d', { startedAt: NOW - 90 * DAY, costPico: 2n ** 63n - 1n, source: 'mixed' }),
  ], 3)
  const fits = (schema: TSchema, answer: unknown, name: string) => {
    t.strictSame([...Value.Errors(schema, answer)], [], name)
    t.ok(Value.Check(schema, answer), name)
  }
  const all = { from: iso(NOW - 200 * DAY) }
  await withReports(file, async reports => {
    for (const own of [null, 'team-a']) {
      fits(API['GET /panel'].response, await reports.panel({}, own), 'panel')
      fits(API['GET /panel'].response, await reports.panel(all, own), 'panel of long')
      fits(API['GET /billing'].response, await reports.billing(all, own), 'billing')
      fits(
        API['GET /statement'].response,
        await reports.statement({ key: 'team-a', month: '2026-11' }, own),
        'statement',
      )
      const logs = await reports.logs({ ...all, limit: 2 }, own)
      fits(API['GET /logs'].response, logs, 'logs')
      fits(API['GET /logs'].response, await reports.logs({ after: logs.last ?? '' }, own), 'logs since')
      fits(API['GET /filters'].response, { ...await reports.filters(own), owners: [] }, 'filters')
      for (const id of ['a', 'b', 'c', 'd']) {
        for (const story of (await reports.requestDetails(id, own)).stories) fits(RequestDetails, story, `story ${id}`)
      }
    }
    fits(API['GET /budgets'].response, await reports.budgets([
      { key: 'team-a', group: null, model: null, per: 'total', limit_usd: '50' },
      { key: 'team-a', group: null, model: 'gpt-*', per: 'month', limit_usd: '0.5' },
      { key: null, group: { name: 'research', members: ['research'] }, model: null, per: 'day', limit_usd: '5' },
    ], {}), 'budgets')
    for (const { figures, first_byte: firstByte } of await reports.upstreamFigures(all)) {
      fits(Figures, figures, 'figures')
      fits(FirstByte, firstByte, 'first byte')
    }
    for (const { figures } of (await reports.keyUse()).values()) fits(Figures, figures, 'figures of a key')
  })
})
