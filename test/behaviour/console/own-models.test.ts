import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { PASSWORD, SECOND_KEY, YAML, startConsole } from './console.ts'

interface Models { readonly models: { readonly name: string }[] }

t.test('a key holder does not see the model names of upstreams', async t => {
  const yaml = YAML
    .replace('model: "other*", to: sim', 'model: smart, to: { upstream: sim, model: up-model-x }')
    .replace('models: {', 'models: { up-model-x: { price: { input: 1, output: 2 } },')
  const gateway = await startConsole(t, yaml)
  const names = async (body: object): Promise<string[]> => {
    const { json } = await (await gateway.login(body)).ask('/models')
    return (json as Models).models.map(({ name }) => name)
  }
  t.ok((await names({ name: 'ops', password: PASSWORD })).includes('up-model-x'))
  const own = await names({ key: KEY })
  t.ok(own.includes('smart') && own.includes('demo'))
  t.notOk(own.includes('up-model-x'))
  t.strictSame(await names({ key: SECOND_KEY }), ['demo'], 'no model that the key may not use is shown')
})
