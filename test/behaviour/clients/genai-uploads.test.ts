import { GoogleGenAI } from '@google/genai'
import { GoogleGenAI as GoogleGenAI2 } from 'genai2'
import t from 'tap'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { rejection } from './setup.ts'

/*
 * Gemini's resumable uploads: one request that begins with /upload names the file, and its response an
 * address at Google's own host. Google's client sends the bytes to the same path at its base URL, in
 * pieces of 8 MB that it calls application/json.
 */

const NARROW = 'sk-narrow-0123456789abcdef'
const CLIENTS: [string, typeof GoogleGenAI, string][] = [
  ['@google/genai 3', GoogleGenAI, 'v1'],
  ['@google/genai 2', GoogleGenAI2 as unknown as typeof GoogleGenAI, 'v1beta'],
]

/** A server that accepts uploads as Google does. */
async function startGoogle(t: Parameters<typeof startUpstream>[0]) {
  const uploads = new Map<string, { due: number, bytes: Buffer[], isFile: boolean }>()
  const requests: string[] = []
  const { url } = await startUpstream(t, async (req, res) => {
    const target = new URL(req.url as string, 'https://generativelanguage.googleapis.com')
    requests.push(`${req.method} ${target.pathname}`)
    t.equal(req.headers['x-goog-api-key'], 'vendor-key')
    const body = await bodyOf(req)
    res.setHeader('content-type', 'application/json')
    if (target.pathname.startsWith('/download/')) {
      res.end('{"line":1}\n')
      return
    }
    const id = target.searchParams.get('upload_id')
    if (id === null) {
      t.match(req.headers, { 'x-goog-upload-protocol': 'resumable', 'x-goog-upload-command': 'start' })
      const due = Number(req.headers['x-goog-upload-header-content-length'])
      const started = `id-${uploads.size}`
      uploads.set(started, { due, bytes: [], isFile: target.pathname.endsWith('/files') })
      JSON.parse(String(body))
      const query = `?key=vendor-key&upload_id=${started}&upload_protocol=resumable`
      const address = target.origin + target.pathname + query
      res.setHeader('x-goog-upload-status', 'active')
      res.setHeader('X-Goog-Upload-URL', address).setHeader('X-Goog-Upload-Control-URL', address).end()
      return
    }
    const upload = uploads.get(id)!
    const offset = upload.bytes.reduce((sum, { length }) => sum + length, 0)
    t.equal(req.headers['x-goog-upload-offset'], String(offset))
    upload.bytes.push(body)
    const isLast = String(req.headers['x-goog-upload-command']).endsWith('finalize')
    res.setHeader('x-goog-upload-status', isLast ? 'final' : 'active')
    if (!isLast) res.end()
    else {
      const file = { name: 'files/f', sizeBytes: String(upload.due) }
      const stored = { name: 'fileSearchStores/s/upload/operations/o', done: true }
      res.end(JSON.stringify(upload.isFile ? { file } : stored))
    }
  })
  const bytesOf = (id: string) => Buffer.concat(uploads.get(id)!.bytes)
  return { url, requests, bytesOf }
}

for (const [name, Client, version] of CLIENTS) {
  t.test(`${name} uploads files`, async t => {
    const google = await startGoogle(t)
    const { url } = await startTestGateway(t, `
upstreams: { google: { url: "${google.url}", auth: { header: x-goog-api-key, value: vendor-key } } }
routes: [{ to: google }]
keys: [{ name: any, key: ${KEY} }, { name: narrow, key: ${NARROW}, models: [m] }]`)
    const seen: string[] = []
    const looking: typeof fetch = async (input, init) => {
      const answer = await fetch(input, init)
      seen.push(JSON.stringify([...answer.headers]))
      return answer
    }
    const { files, fileSearchStores } = new Client({
      apiKey: KEY, httpOptions: { baseUrl: url, fetch: looking },
    })
    const bytes = Buffer.alloc(9 * 1024 * 1024, 'not JSON\xff\x00', 'latin1')
    const file = await files.upload({ file: new Blob([bytes]), config: { mimeType: 'video/mp4' } })
    t.match(file, { name: 'files/f', sizeBytes: String(bytes.length) })
    t.ok(google.bytesOf('id-0').equals(bytes), 'byte for byte')
    t.ok(seen[0]!.includes('upload_id=id-0&upload_protocol=resumable'))
    t.notMatch(seen.join(''), 'vendor-key', 'the client gets the address without the key')

    const stored = await fileSearchStores.uploadToFileSearchStore({
      fileSearchStoreName: 'fileSearchStores/s',
      file: new Blob(['hello']),
      config: { mimeType: 'text/plain' },
    })
    t.match(stored, { name: 'fileSearchStores/s/upload/operations/o' })
    t.equal(String(google.bytesOf('id-1')), 'hello')
    const store = `POST /upload/${version}/fileSearchStores/s:uploadToFileSearchStore`
    const asked = [...Array<string>(3).fill(`POST /upload/${version}/files`), store, store]
    t.strictSame(google.requests, asked)

    const narrow = new Client({ apiKey: NARROW, httpOptions: { baseUrl: url } }).files
    const refused = await rejection(
      t, narrow.upload({ file: new Blob(['x']), config: { mimeType: 'text/plain' } }), 'narrow',
    )
    t.match(refused, { name: 'ApiError', status: 403, message: /PERMISSION_DENIED/ })
    t.strictSame(google.requests, asked, 'a key that is limited to models cannot use files')
  })
}

t.test('a result is downloaded with a key, and an upload gets 401 without a key and 404 without a route', async t => {
  const google = await startGoogle(t)
  const { url } = await startTestGateway(t, `
upstreams: { google: { url: "${google.url}", auth: { header: x-goog-api-key, value: vendor-key } } }
routes: [{ path: /download/v1beta/files/*, to: google }, { path: /v1/*, to: google }]`)
  const path = '/download/v1beta/files/f:download?alt=media'
  const got = await fetch(url + path, { headers: { 'x-goog-api-key': KEY } })
  t.equal(await got.text(), '{"line":1}\n')
  for (const [key, status] of [['', 401], [KEY, 404]] as const) {
    const headers = { 'x-goog-api-key': key }
    const refused = await fetch(`${url}/Upload/V1Beta/files`, { method: 'POST', headers })
    t.equal(refused.status, status)
    t.match(await refused.json(), { error: { code: status, status: /^[A-Z_]+$/ } })
  }
})
