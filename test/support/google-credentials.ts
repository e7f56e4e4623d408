import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { setEnvironment } from './environment.ts'
import { sendJson } from './token-server.ts'
import { startUpstream } from './upstream.ts'

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
/** The private key of all service accounts in tests, as PEM. */
export const PRIVATE_KEY = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string

/** Writes the file of a service account. @returns its name */
export function serviceAccountFile(t: Pick<Test, 'teardown'>, tokenUrl: string, members: Record<string, unknown> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'google-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'google.json')
  writeFileSync(file, JSON.stringify({
    type: 'service_account', project_id: 'file-project', private_key_id: 'k1', private_key: PRIVATE_KEY,
    client_email: 'gateway@file-project.iam.gserviceaccount.com', token_uri: tokenUrl, ...members,
  }))
  return file
}

/** The claims of a service account's assertion (RFC 7523), whose signature is checked. */
export function claimsOf(assertion: string): Record<string, unknown> {
  const [header = '', claims = '', signature = ''] = assertion.split('.')
  const isSigned = verify('sha256', Buffer.from(`${header}.${claims}`), createPublicKey(PRIVATE_KEY), Buffer.from(signature, 'base64url'))
  if (!isSigned) throw new Error('the signature is wrong')
  return JSON.parse(Buffer.from(claims, 'base64url').toString()) as Record<string, unknown>
}

/** A metadata server of Google Cloud, which the environment names until the test ends. */
export async function startMetadataServer(t: Test): Promise<{ readonly requests: string[], status: number }> {
  const server = { requests: [] as string[], status: 200 }
  const { url } = await startUpstream(t, (req, res) => {
    server.requests.push(`${req.headers['metadata-flavor']} ${req.url}`)
    res.setHeader('metadata-flavor', 'Google')
    if (server.status !== 200) res.writeHead(server.status).end()
    else if (req.url?.endsWith('/project-id')) res.end('metadata-project')
    else sendJson(res, 200, { access_token: 'metadata-token', expires_in: 3_599, token_type: 'Bearer' })
  })
  setEnvironment(t, { GCE_METADATA_HOST: new URL(url).host, GOOGLE_APPLICATION_CREDENTIALS: undefined, CLOUDSDK_CONFIG: join(tmpdir(), 'no-such-folder') })
  return server
}
