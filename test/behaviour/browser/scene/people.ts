export const PASSWORD = 'a password for the tests alone'
export const ADMIN = { name: 'ops', password: PASSWORD }
export const VIEWER = { name: 'auditor', password: PASSWORD }
/** The API keys, by name. */
export const KEYS = {
  'web-app': 'sk-test-web-app-0123456789',
  'batch-nightly': 'sk-test-batch-nightly-0123456789',
  research: 'sk-test-research-0123456789',
  'support-bot': 'sk-test-support-bot-0123456789',
} as const
