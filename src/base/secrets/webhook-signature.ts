import { createHmac } from 'node:crypto'
import type { WallTime } from '../clock.ts'

/**
 * Headers that identify and sign a message, as in
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 * @param id the same for each delivery of the message
 * @param secret if it begins with whsec_ the rest is base64, otherwise it is used as text; null = the message is not signed
 */
export function signatureHeaders(id: string, at: WallTime, body: string | Buffer, secret: string | null): Record<string, string> {
  const timestamp = String(Math.floor(at / 1_000))
  const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp }
  if (secret === null) return headers
  const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice('whsec_'.length), 'base64') : secret
  const digest = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')
  return { ...headers, 'webhook-signature': `v1,${digest}` }
}
