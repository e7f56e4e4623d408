import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { defaultCredentialsFile, defaultProject } from '../../../src/config/sections/google-defaults.ts'
import { setEnvironment } from '../../support/environment.ts'

t.test('the file in GOOGLE_APPLICATION_CREDENTIALS has priority over the default credentials file of the user', async t => {
  const folder = t.testdir({})
  setEnvironment(t, { GOOGLE_APPLICATION_CREDENTIALS: undefined, CLOUDSDK_CONFIG: folder, GOOGLE_CLOUD_PROJECT: '' })
  t.equal(defaultCredentialsFile(), null)
  t.equal(defaultProject(), null)
  const file = join(folder, 'application_default_credentials.json')
  writeFileSync(file, '{}')
  t.equal(defaultCredentialsFile(), file)
  setEnvironment(t, { GOOGLE_APPLICATION_CREDENTIALS: '/run/google.json', GOOGLE_CLOUD_PROJECT: 'p' })
  t.equal(defaultCredentialsFile(), '/run/google.json')
  t.equal(defaultProject(), 'p')
})
