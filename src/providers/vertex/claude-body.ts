import { scanJson } from '../../protocols/json/json-scan.ts'
import { WatchedKeys } from '../../protocols/json/watched-keys.ts'
import { replaceMembers } from '../shared/replace-members.ts'

const WATCHED = new WatchedKeys(['model', 'anthropic_version'])
const VERSION = '"anthropic_version":"vertex-2023-10-16"'

/** Adds the version, which is a header in Anthropic's API. @param keepsModel true = keep `model`, because the path does not contain it */
export function claudeBody(body: Buffer, keepsModel: boolean): Buffer {
  const json = scanJson(body, WATCHED)
  if (!json.ok || json.members === null) return body
  const models = keepsModel ? [] : json.fields.get('model') ?? []
  const versions = json.fields.get('anthropic_version') ?? []
  // The body has the form of Vertex AI already.
  if (models.length === 0 && versions.length === 1) return body
  return replaceMembers(body, json.members, [...models, ...versions], [VERSION])
}
