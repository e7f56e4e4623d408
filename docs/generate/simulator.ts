import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { BehaviourError, GRAMMAR } from '../../src/simulator/behaviour.ts'
import { createSimulator } from '../../src/simulator/index.ts'
import { code, generatedFrom, plain, table } from './markdown.ts'

/** docs/reference/simulator.md: the models that the simulator lists, and what each behaviour takes. */
export async function simulatorPage(): Promise<string> {
  const models = (await listedModels()).map(id => [code(id)])
  const behaviours = Object.keys(GRAMMAR).map(name => [code(name), plain(takes(name as keyof typeof GRAMMAR))])
  return `${generatedFrom('the simulator')}

# Simulator behaviours

The values that each behaviour of the [simulator](../simulator.md) takes.

## Models

\`GET /v1/models\` of the simulator lists these models. Any other name works too.

${table(['Model'], models)}

## Behaviours

${table(['Name', 'Takes'], behaviours)}
`
}

/** What the grammar itself says when a value is missing. */
function takes(name: keyof typeof GRAMMAR): string {
  try {
    GRAMMAR[name](name, null)
    return 'no value'
  } catch (error) {
    if (!(error instanceof BehaviourError)) throw error
    return /takes (.*), not nothing/.exec(error.message)?.[1] ?? error.message
  }
}

async function listedModels(): Promise<string[]> {
  const server = createSimulator()
  server.listen({ host: '127.0.0.1', port: 0 })
  await once(server, 'listening')
  try {
    const { port } = server.address() as AddressInfo
    const res = await fetch(`http://127.0.0.1:${port}/v1/models`)
    const { data } = await res.json() as { data: { id: string }[] }
    return data.map(({ id }) => id)
  } finally {
    server.close()
    server.closeAllConnections()
  }
}
