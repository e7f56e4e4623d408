import t from 'tap'
import type { Route } from '../../src/config/types.ts'
import { ModelLabels } from '../../src/telemetry/model-labels.ts'

const route = (text: string, models: readonly string[] | null) => ({ text, models }) as unknown as Route

t.test('a model has a label only if a route accepts the model', async t => {
  const labels = new ModelLabels()
  labels.configure([route('r', ['gpt-4o', 'gpt-*'])])
  t.equal(labels.labelOf('gpt-4o', 'r'), 'gpt-4o')
  t.equal(labels.labelOf('gpt-x', 'r'), 'gpt-x')
  t.equal(labels.labelOf('gpt-4o', null), '')
  t.equal(labels.labelOf(null, 'r'), '')
})

t.test('each route has at most 200 labels beyond the models of the configuration', async t => {
  const labels = new ModelLabels()
  labels.configure([route('r', ['fixed', '*']), route('s', null)])
  const named = Array.from({ length: 201 }, (_, n) => labels.labelOf(`m${n}`, 'r'))
  t.strictSame(named.slice(199), ['m199', 'other'])
  t.strictSame([labels.labelOf('m0', 'r'), labels.labelOf('fixed', 'r'), labels.labelOf('m200', 's')], ['m0', 'fixed', 'm200'])
})

t.test('the limit of labels is divided among the workers', async t => {
  const labelsOf = (workers: number, count: number) => {
    const labels = new ModelLabels(workers)
    return Array.from({ length: count }, (_, n) => labels.labelOf(`m${n}`, 'r'))
  }
  t.strictSame(labelsOf(100, 3), ['m0', 'm1', 'other'])
  t.strictSame(labelsOf(1000, 2), ['m0', 'other'], 'each worker has at least one label')
})

t.test('a long name is cut to valid text', async t => {
  const labels = new ModelLabels()
  t.equal(labels.labelOf('x'.repeat(101), 'r'), 'x'.repeat(100))
  t.equal(labels.labelOf(`${'x'.repeat(100)}y`, 'r'), 'x'.repeat(100))
  t.equal(labels.labelOf(`${'y'.repeat(99)}\u{1f600}`, 'r'), `${'y'.repeat(99)}\ufffd`)
})

t.test('the model name of an upstream is a label only if it is configured or requested by clients', async t => {
  const labels = new ModelLabels()
  labels.configure([route('r', ['fixed', '*'])])
  labels.labelOf('chosen', 'r')
  t.strictSame([labels.knownLabel('fixed'), labels.knownLabel('chosen'), labels.knownLabel('secret'), labels.knownLabel('')], ['fixed', 'chosen', 'other', ''])
})

t.test('the labels of a removed route are removed', async t => {
  const labels = new ModelLabels()
  labels.configure([route('r', ['*']), route('s', ['*'])])
  labels.labelOf('a', 'r')
  labels.labelOf('b', 's')
  labels.configure([route('s', ['*'])])
  t.strictSame([labels.knownLabel('a'), labels.knownLabel('b')], ['other', 'b'])
})
