import type { Test } from 'tap'
import { KEYS } from './people.ts'
import type { Scene } from './scene.ts'

type KeyName = keyof typeof KEYS

interface Wanted {
  readonly key: KeyName | null
  readonly model: string
  /** Behaviour of the simulator. */
  readonly how?: string
  readonly stream?: boolean
  readonly path?: string
}

/** Sends requests of all kinds and waits until they end. Two streams run until the test ends. */
export async function makeTraffic(t: Test, base: string): Promise<Scene['requests']> {
  const send = (wanted: Wanted, signal?: AbortSignal) => request(base, wanted, signal)
  const finish = async (wanted: Wanted) => {
    const response = await send(wanted)
    await response.arrayBuffer()
    return idOf(response)
  }
  const answered = await finish({
    key: 'web-app', model: 'gpt-5.1', how: 'input=4200,tokens=180,cached=1200',
  })
  for (let index = 0; index < 6; index++) {
    await Promise.all([
      finish({
        key: 'web-app', model: 'gpt-5-mini', how: `input=${900 + index * 70},tokens=60`, stream: true,
      }),
      finish({
        key: 'batch-nightly', model: 'claude-sonnet-4.5', path: '/v1/messages',
        how: `input=${3000 + index},tokens=90`,
      }),
      finish({ key: 'research', model: 'gemini-3-pro', how: `input=${2100 + index},tokens=120` }),
      finish({ key: 'support-bot', model: 'gpt-5-mini', how: 'tokens=24,usage=none', stream: true }),
    ])
  }
  const failed = await finish({ key: 'research', model: 'gemini-3-pro', how: 'status=503' })
  await finish({ key: 'web-app', model: 'gemini-3-pro' }) // a model that the key may not use
  await finish({ key: null, model: 'gpt-5.1' })
  await finish({ key: 'web-app', model: 'house-model' }).catch(() => null)
  await finish({ key: 'research', model: 'house-model', how: 'tokens=40' }) // without a price
  let rescued = ''
  // Enough failures to open the circuit of the unreachable upstream.
  for (let index = 0; index < 8; index++) {
    rescued = await finish({ key: 'research', model: 'gpt-5.1-eu', how: 'tokens=30' })
  }
  const continued = await finish({ key: 'research', model: 'steady', stream: true })
  const gone = await leave(send)
  await keepRunning(t, send)
  return { answered, failed, gone, rescued, continued }
}

type Send = (wanted: Wanted, signal?: AbortSignal) => Promise<Response>

/** A client that disconnects in the middle of a response. */
async function leave(send: Send): Promise<string> {
  const leaving = new AbortController()
  const response = await send(
    { key: 'web-app', model: 'gpt-5.1', how: 'tokens=5000,pace=20ms', stream: true }, leaving.signal,
  )
  await response.body?.getReader().read()
  leaving.abort()
  return idOf(response)
}

/** Two streams that run until the test ends. */
async function keepRunning(t: Test, send: Send): Promise<void> {
  const ending = new AbortController()
  t.teardown(() => { ending.abort() })
  for (const key of ['web-app', 'research'] as const) {
    const model = key === 'research' ? 'claude-sonnet-4.5' : 'gpt-5.1'
    const response = await send({ key, model, how: 'tokens=15000,pace=100ms', stream: true }, ending.signal)
    await response.body?.getReader().read()
  }
}

function request(
  base: string, { key, model, how, stream = false, path = '/v1/chat/completions' }: Wanted,
  signal?: AbortSignal,
) {
  return fetch(`${base}${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...key !== null && { authorization: `Bearer ${KEYS[key]}` },
      ...how !== undefined && { 'x-simulate': how },
    },
    body: JSON.stringify({
      model, max_tokens: 20_000, stream, messages: [{ role: 'user', content: 'Hello there.' }],
    }),
    ...signal && { signal },
  })
}

function idOf(response: Response): string {
  const id = response.headers.get('x-gateway-request-id')
  if (id === null) throw new Error(`response ${response.status} without a request id`)
  return id
}
