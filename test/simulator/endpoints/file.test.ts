import t from 'tap'
import { start } from '../start.ts'

t.test('files are described but not stored', async t => {
  const { url } = await start(t)
  const form = new FormData()
  form.append('purpose', 'batch')
  form.append('file', new Blob(['12345']), 'in.jsonl')
  const sent = await (await fetch(`${url}/v1/files`, { method: 'POST', body: form })).json()
  t.match(sent, {
    id: /^file-/,
    object: 'file',
    bytes: 5,
    filename: 'in.jsonl',
    purpose: 'batch',
    status: 'processed',
  })
  t.match(await (await fetch(`${url}/v1/files`)).json(), {
    object: 'list',
    data: [{ object: 'file' }],
    has_more: false,
  })
  t.match(await (await fetch(`${url}/v1/files/file-1`)).json(), { id: 'file-1', object: 'file' })
  t.equal(await (await fetch(`${url}/v1/files/file-1/content`)).text(), 'simulated content of file-1\n')
  const deleted = await fetch(`${url}/v1/files/file-1`, { method: 'DELETE' })
  t.same(await deleted.json(), { id: 'file-1', object: 'file', deleted: true })
})
