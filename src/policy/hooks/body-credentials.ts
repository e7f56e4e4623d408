import { isObject } from '../../base/is-object.ts'
import { parseBounded } from '../../base/json-size.ts'

/** Members of a body in which clients give a model's server credentials for other services, such as MCP servers. */
const HOLDERS = ['tools', 'mcp_servers']
/** Names of such credentials. */
const CREDENTIAL = /^(?:authorization(?:_token)?|api[-_]?key|access[-_]?token|token|secret|client[-_]?secret|password|cookie)$/i
const MASKED = '[credential]'

/**
 * A JSON body without credentials for tools and MCP servers.
 * @param body valid JSON @returns `body` itself if it has none; null as JSON if it has too many values to be read
 */
export function withoutCredentials(body: Buffer): Buffer {
  let parsed: unknown
  try {
    parsed = parseBounded(body.toString('utf8'))
  } catch {
    // The body was valid when it was received, so it exceeds a bound. Unread, it could have credentials.
    return Buffer.from('null')
  }
  if (!isObject(parsed)) return body
  let masked = false
  for (const name of HOLDERS) {
    if (Object.hasOwn(parsed, name)) masked = maskIn(parsed[name]) || masked
  }
  return masked ? Buffer.from(JSON.stringify(parsed)) : body
}

/** @returns true = something was masked */
function maskIn(value: unknown): boolean {
  if (Array.isArray(value)) return value.reduce<boolean>((masked, entry) => maskIn(entry) || masked, false)
  if (!isObject(value)) return false
  let masked = false
  for (const [name, member] of Object.entries(value)) {
    if (name === 'headers' && isObject(member)) {
      for (const header of Object.keys(member)) member[header] = MASKED
      masked = true
    } else if (CREDENTIAL.test(name) && typeof member === 'string') {
      value[name] = MASKED
      masked = true
    } else {
      masked = maskIn(member) || masked
    }
  }
  return masked
}
