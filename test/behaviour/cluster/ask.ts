import { KEY } from '../../support/gateway.ts'

/** Sends a request to the model `demo`, and reads the whole response. @returns the status */
export async function ask({ url }: { readonly url: string }, key = KEY): Promise<number> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo', max_tokens: 10, messages: [{ role: 'user', content: 'Hello' }] }),
  })
  await response.text()
  return response.status
}
