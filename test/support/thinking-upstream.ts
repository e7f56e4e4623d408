import type { Test } from 'tap'
import { KEY } from './gateway.ts'
import { bodyOf, startUpstream } from './upstream.ts'

/** A messages upstream that thinks before a tool call. A chat client gets the thinking inside of the call id. */
export interface ThinkingUpstream {
  readonly url: string
  /** The bodies of its requests. */
  readonly seen: readonly string[]
  /** @returns the id of the call that a chat client gets from the gateway */
  capsuleOf(gateway: { readonly url: string }): Promise<string>
  /** Does the upstream get its thinking back after a client sends the id? @throws if lost thinking is not reported */
  comesBack(gateway: { readonly url: string }, id: string): Promise<boolean>
}

export async function startThinkingUpstream(t: Pick<Test, 'teardown'>, thinking = 'Hm.'): Promise<ThinkingUpstream> {
  const seen: string[] = []
  const { url } = await startUpstream(t as Test, async (req, res) => {
    seen.push((await bodyOf(req)).toString())
    res.writeHead(200, { 'content-type': 'application/json' })
    res.end(JSON.stringify({
      id: 'm', type: 'message', role: 'assistant', model: 'm', stop_reason: 'tool_use', stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 },
      content: [{ type: 'thinking', thinking, signature: 'sig' }, { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }],
    }))
  })
  return {
    url, seen,
    capsuleOf: async gateway => {
      const response = await chat(gateway, [])
      const { choices } = await response.json() as { choices: { message: { tool_calls: { id: string }[] } }[] }
      return choices[0]!.message.tool_calls[0]!.id
    },
    comesBack: async (gateway, id) => {
      const response = await chat(gateway, [id])
      await response.text()
      const isBack = response.status === 200 && (seen.at(-1) as string).includes('"signature":"sig"')
      if (isBack !== (response.headers.get('x-gateway-dropped') === null)) throw new Error(`status ${response.status}, and nothing is named`)
      return isBack
    },
  }
}

/** A conversation of a chat client, with the calls of these ids. */
export function conversation(ids: readonly string[]): Record<string, unknown> {
  return {
    model: 'm', messages: [
      { role: 'user', content: 'Look' },
      ...ids.length === 0 ? [] : [{ role: 'assistant', tool_calls: ids.map(id => ({ id, type: 'function', function: { name: 'look', arguments: '{}' } })) }],
      ...ids.map(id => ({ role: 'tool', tool_call_id: id, content: 'ok' })),
    ],
  }
}

export function chat({ url }: { readonly url: string }, ids: readonly string[]): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    // On a new connection, so that another worker may get the request.
    method: 'POST', headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json', 'connection': 'close' },
    body: JSON.stringify(conversation(ids)),
  })
}
