import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { chatVendor, deepseekVendor, mistralVendor, openaiVendor } from '../../support/vendors/chat.ts'
import { converseVendor, novaVendor } from '../../support/vendors/converse.ts'
import { generateVendor } from '../../support/vendors/generate.ts'
import { invokeVendor, newClaudeVendor } from '../../support/vendors/messages.ts'
import { reasoningVendor } from '../../support/vendors/responses.ts'
import { SOLUTION, PROMPT, holdSession, isMissing } from './command-line.ts'
import type { Client } from './command-line.ts'

const GEMINI_CLI: Client = {
  command: 'gemini',
  protocol: 'generate',
  args: () => ['--skip-trust', '--approval-mode', 'yolo', '-m', 'gemini-3-pro-preview', '-p', PROMPT],
  env: ({ url }) => ({ GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: KEY }),
  prepare: ({ home }) => {
    mkdirSync(join(home, '.gemini'))
    writeFileSync(join(home, '.gemini', 'settings.json'), JSON.stringify({
      security: { auth: { selectedType: 'gemini-api-key' } }, privacy: { usageStatisticsEnabled: false }, telemetry: { enabled: false },
      general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
    }))
  },
  look: ({ directory }) => ({ calls: [
    { name: 'read_file', input: { file_path: join(directory, 'question.txt') } },
    { name: 'read_file', input: { file_path: join(directory, 'picture.png') } },
    { name: 'run_shell_command', input: { command: 'wc -c < question.txt > counted.txt', description: 'Count' } },
  ] }),
  write: ({ directory }) => ({ calls: [{ name: 'write_file', input: { file_path: join(directory, 'solution.txt'), content: SOLUTION } }] }),
}

t.test('Gemini CLI', { skip: isMissing('gemini') }, async t => {
  for (const vendor of [generateVendor, chatVendor, newClaudeVendor, mistralVendor, openaiVendor, deepseekVendor, reasoningVendor, invokeVendor, converseVendor, novaVendor]) {
    t.test(`over ${vendor.protocol}, ${vendor.model ?? 'any model'}`, t => holdSession(t, GEMINI_CLI, vendor))
  }
})
