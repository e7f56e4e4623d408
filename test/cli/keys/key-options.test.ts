import { InvalidArgumentError } from 'commander'
import t from 'tap'
import { parseLimit, parseModels } from '../../../src/cli/keys/key-options.ts'
import type { ParsedLimits } from '../../../src/cli/keys/key-options.ts'

function limits(...texts: string[]) {
  return texts.reduce<ParsedLimits | undefined>((before, text) => parseLimit(text, before), undefined)
}

t.test('several --limit options are combined, each for all models or for one glob', async t => {
  t.same(limits('requests_per_minute=1', 'tokens_per_minute=1000000000000', 'budget=1000000000/month'), {
    requestsPerMinute: 1, tokensPerMinute: 1e12, concurrent: null,
    budget: { usd: '1000000000', per: 'month' }, models: new Map(),
  })
  const given = limits(
    'concurrent=3', 'gpt-*:concurrent=2', 'a:b:budget=0.000000000001/day', 'gpt-*:budget=5/total',
  )
  t.equal(given?.concurrent, 3)
  t.equal(given?.budget, null)
  t.match(given?.models.get('gpt-*'), { concurrent: 2, budget: { usd: '5', per: 'total' } })
  t.match(given?.models.get('a:b'), { concurrent: null, budget: { usd: '0.000000000001', per: 'day' } })
})

t.test('a limit that is out of range, malformed or given twice is refused', async t => {
  for (const texts of [
    ['concurrent=0'], ['concurrent=1.5'], ['concurrent=1e3'], ['concurrent=1000000000001'], ['concurrent='],
    ['budget=1000000001/day'], ['budget=1/year'], ['budget=1.0000000000001/day'], ['budget=.5/day'],
    ['budget=1/Day'], ['nothing=1'], ['=1'], ['gpt-*:'],
    ['concurrent=1', 'concurrent=1'], ['budget=1/day', 'budget=2/day'], ['a:concurrent=1', 'a:concurrent=2'],
  ]) t.throws(() => limits(...texts), InvalidArgumentError, texts.join(' '))
})

t.test('a list of models is split at commas, and duplicates are removed', async t => {
  t.same(parseModels(' gpt-* , fast', ['fast', 'o3']), ['fast', 'o3', 'gpt-*'])
  t.same(parseModels('x'.repeat(1024)), ['x'.repeat(1024)])
  for (const text of ['', ' ', 'a,,b', 'a,', 'x'.repeat(1025)]) {
    t.throws(() => parseModels(text), InvalidArgumentError, JSON.stringify(text.slice(0, 9)))
  }
})
