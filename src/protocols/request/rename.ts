import { GatewayError } from '../../base/errors.ts'
import type { InspectedBody } from './inspect.ts'
import { scanJson, type Field } from '../json/json-scan.ts'
import type { Classified } from '../endpoint/protocol.ts'
import { insertion, replaceValues, type Edit } from '../json/splice.ts'

/** Replaces the client's name of the model in the path. @param path the path that was classified */
export function renamePath(classified: Classified, path: string, model: string): string {
  if (classified.pathModelEnd === 0) return path
  const { pathModelStart: start, pathModelEnd: end } = classified
  return path.slice(0, start) + encodeURIComponent(model) + path.slice(end)
}

/**
 * Edits that put the upstream's name of the model into the body. Requests of the generate protocol name the model in the path and, as
 * `models/NAME`, in some bodies.
 * @param from the client's name; null = none
 * @param to the upstream's name; null = no name is sent
 */
export function renameEdits(classified: Classified, body: InspectedBody, from: string | null, to: string | null): Edit[] {
  const { endpoint: { modelIn }, pathModelEnd } = classified
  const isThere = modelIn === 'deployment' ? body.model === to : from === to
  if (to === null || isThere) return []
  if (modelIn === 'path') return renameNested(body, classified.pathModel as string, to)
  if (modelIn === 'deployment' && body.modelFields.length === 0) {
    // If the path names the model, the body needs no name.
    return pathModelEnd === 0 ? addModelEdits(body, to) : []
  }
  return replaceValues(body.modelFields, Buffer.from(body.json ? JSON.stringify(to) : to))
}

function addModelEdits({ bytes, json, delimiter }: InspectedBody, model: string): Edit[] {
  if (json?.members) return [insertion(json.members, Buffer.from(`"model":${JSON.stringify(model)}`))]
  if (delimiter === null) return []
  const { start, end } = delimiter
  const field = `\r\nContent-Disposition: form-data; name="model"\r\n\r\n${model}\r\n`
  return [{ start, end: start, bytes: Buffer.concat([bytes.subarray(start, end), Buffer.from(field)]) }]
}

function renameNested(body: InspectedBody, from: string, to: string): Edit[] {
  const edits: Edit[] = []
  const rename = (fields: readonly Field[], base: number) => {
    for (const field of fields) {
      if (field.type !== 'string') continue
      const start = base + field.start
      const end = base + field.end
      const name: unknown = JSON.parse(body.bytes.toString('utf8', start, end))
      if (name === `models/${from}`) edits.push({ start, end, bytes: Buffer.from(JSON.stringify(`models/${to}`)) })
      else if (name === from) edits.push({ start, end, bytes: Buffer.from(JSON.stringify(to)) })
    }
  }
  const inObject = (start: number, end: number) => {
    const inner = scanJson(body.bytes.subarray(start, end), ['model'])
    if (inner.ok) rename(inner.fields.get('model') ?? [], start)
  }
  rename(body.json?.fields.get('model') ?? [], 0)
  for (const field of body.json?.fields.get('generateContentRequest') ?? []) {
    if (field.type === 'object') inObject(field.start, field.end)
  }
  for (const field of body.json?.fields.get('requests') ?? []) {
    if (field.type !== 'array') continue
    for (const { start, end } of arrayElements(body.bytes, field.start, field.end)) inObject(start, end)
  }
  return edits
}

/** Maximum number of requests in a batch: some hundred times more than Google accepts. */
const MAX_BATCH_REQUESTS = 10_000

/**
 * Bounds of each element of a valid JSON array of objects.
 * @throws GatewayError invalid_json if the array has more elements than any provider accepts, because no other request is served during the
 * scan
 */
function arrayElements(bytes: Buffer, from: number, to: number): { start: number; end: number }[] {
  const elements: { start: number; end: number }[] = []
  let depth = 0
  let start = -1
  for (let i = from + 1; i < to - 1; i++) {
    const byte = bytes[i]
    if (byte === 0x22) {
      for (i++; bytes[i] !== 0x22; i++) if (bytes[i] === 0x5c) i++
    } else if (byte === 0x7b || byte === 0x5b) {
      if (depth++ === 0) start = i
    } else if (byte === 0x7d || byte === 0x5d) {
      if (--depth === 0 && bytes[start] === 0x7b) elements.push({ start, end: i + 1 })
      if (elements.length > MAX_BATCH_REQUESTS) {
        throw new GatewayError('invalid_json', `the batch has more than ${MAX_BATCH_REQUESTS} requests`)
      }
    }
  }
  return elements
}
