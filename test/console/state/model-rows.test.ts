import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { PASSWORD, YAML, startConsole } from '../../behaviour/console/console.ts'

const TWO = YAML
  .replace(/routes: .*/, `routes:
  - model: smart
    to: [{ upstream: sim, model: cheap }, { upstream: spare, model: dear }, { upstream: spare, model: demo }]
    on: { context_length: { upstream: spare, model: nobody-knows } }
  - { path: /v1/messages, model: split, to: spare }
  - { model: [split, same], to: [sim, spare] }`)
  .replace('sim: { simulator: true }', 'sim: { simulator: true }, spare: { simulator: true }')
  .replace(/models: .*/, `models:
  demo: { price: { input: 1, output: 2 } }
  cheap: { price: { input: 1, output: 2 } }
  dear:
    price: { input: 3, output: 6, tiers: [{ above: 9, input: 4 }], service_tiers: { flex: { output: 1 } } }
  same: { price: { input: 5 } }`)

interface Models { readonly models: readonly Record<string, unknown>[] }

const OPS = { name: 'ops', password: PASSWORD }
const ALL = ['chat', 'responses', 'messages', 'generate']

t.test('targets and prices of a model', async t => {
  const gateway = await startConsole(t, TWO)
  const model = async (body: object, name: string): Promise<Record<string, unknown> | undefined> => {
    const { json } = await (await gateway.login(body)).ask('/models')
    return (json as Models).models.find(model => model['name'] === name)
  }

  await t.test('the targets of a model are listed with their prices', async t => {
    const smart = await model(OPS, 'smart')
    t.match(smart, { price: { input: '1', output: '2' }, price_varies: true, upstream: 'sim' })
    t.match(smart?.['targets'], [
      { upstream: 'sim', model: 'cheap', after: null, protocols: ALL, price: { input: '1', output: '2' } },
      {
        upstream: 'spare', model: 'dear', after: null, price: {
          'input': '3', 'output': '6', 'input > 9': '4',
          'input (flex)': '3', 'output (flex)': '1', 'input > 9 (flex)': '4',
        },
        price_source: /^config /,
      },
      { upstream: 'spare', model: 'demo', after: null, price: { input: '1', output: '2' } },
      { upstream: 'spare', model: 'nobody-knows', after: 'context_length', price: null, price_source: null },
    ])
  })

  await t.test('targets with equal prices have one price, and each target lists the protocols that reach it', async t => {
    t.match(await model(OPS, 'same'), {
      price: { input: '5' }, price_varies: false, targets: [{ upstream: 'sim' }, { upstream: 'spare' }],
    })
    t.match((await model(OPS, 'split'))?.['targets'], [
      { upstream: 'sim', model: null, protocols: ['chat', 'responses', 'generate'] },
      { upstream: 'spare', model: null, protocols: ALL },
    ])
  })

  await t.test('the holder of a key sees neither prices nor targets', async t => {
    const smart = await model({ key: KEY }, 'smart')
    t.match(smart, { price: null, price_source: null, price_varies: false, upstream: null })
    t.strictSame(smart?.['targets'], [])
    t.notMatch(JSON.stringify(smart), /spare|dear|sim/)
  })
})
