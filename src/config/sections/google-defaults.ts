import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** The file with application default credentials; null = there is none, so the metadata server is used. */
export function defaultCredentialsFile(): string | null {
  const { GOOGLE_APPLICATION_CREDENTIALS: file, CLOUDSDK_CONFIG: folder = join(homedir(), '.config', 'gcloud') } = process.env
  if (file) return file
  const ofUser = join(folder, 'application_default_credentials.json')
  return existsSync(ofUser) ? ofUser : null
}

/** The project that the environment names; null = none. */
export function defaultProject(): string | null {
  return process.env['GOOGLE_CLOUD_PROJECT'] || null
}
