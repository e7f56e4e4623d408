import { string, type Json } from '../json.ts'
import type { SimulatedRequest } from '../request.ts'
import { json, responseOf, type SimulatedResponse } from '../simulated-response.ts'

/** /v1/files and paths below it. Nothing is stored: an uploaded file is only described, and every requested file exists. */
export function files(request: SimulatedRequest): SimulatedResponse {
  const [id, part] = request.path.slice('/v1/files'.length).split('/').slice(1)
  if (!id) return request.method === 'POST' ? json(uploaded(request)) : json(listOf(request))
  if (part === 'content') return responseOf('application/octet-stream', `simulated content of ${id}\n`)
  if (request.method === 'DELETE') return json({ id, object: 'file', deleted: true })
  return json(describe(request, id, 'simulated.jsonl', 0, 'user_data'))
}

function listOf(request: SimulatedRequest): Json {
  const file = describe(request, 'file-simulated', 'simulated.jsonl', 0, 'user_data')
  return { object: 'list', data: [file], first_id: file['id'], last_id: file['id'], has_more: false }
}

function uploaded(request: SimulatedRequest): Json {
  const file = request.form?.get('file')
  const [name, bytes] = file instanceof File ? [file.name, file.size] : ['simulated.jsonl', 0]
  const purpose = string(request.form?.get('purpose'), 'user_data')
  return describe(request, request.id('file-'), name, bytes, purpose)
}

function describe(
  request: SimulatedRequest, id: string, filename: string, bytes: number, purpose: string,
): Json {
  return {
    id, object: 'file', bytes, created_at: request.now, expires_at: null, filename, purpose,
    status: 'processed', status_details: null,
  }
}
