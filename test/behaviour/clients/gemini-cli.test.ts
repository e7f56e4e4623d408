import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { chatVendor, deepseekVendor, mistralVendor, openaiVendor } from '../../support/vendors/chat.ts'
import { converseVendor, novaVendor } from '../../support/vendors/converse.ts'
import { generateVendor } from '../../support/vendors/generate.ts'
import { invokeVendor, newClaudeVendor } from '../../support/vendors/messages.ts'
import { reasoningVendor } from '../../support/vendors/responses.ts'
import { SOLUTION, PROMPT, TASK, holdDelegatedSession, holdSession, isMissing } from './command-line.ts'
import type { Client, DelegatingClient } from './command-line.ts'

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

/** Compacts when the last response used more than that share of the context window. */
const COMPRESSION = { model: { compressionThreshold: 0.0005 } }

const DELEGATING: DelegatingClient = {
  ...GEMINI_CLI,
  prepare: place => {
    GEMINI_CLI.prepare?.(place)
    const file = join(place.home, '.gemini', 'settings.json')
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')) as object, ...COMPRESSION }))
  },
  delegate: () => ({ calls: [{ name: 'invoke_agent', input: { agent_name: 'generalist', prompt: TASK } }] }),
  isAgent: text => text.includes('complete_task'),
  // The client compacts the conversation of an agent whose turn has only text.
  report: (response, time) => (time === 1 ? { text: response } : { thinking: 'I have it.', calls: [{ name: 'complete_task', input: { result: { response } } }] }),
  compaction: /state_snapshot/,
}

t.test('Gemini CLI', { skip: isMissing('gemini') }, async t => {
  for (const vendor of [generateVendor, chatVendor, newClaudeVendor, mistralVendor, openaiVendor, deepseekVendor, reasoningVendor, invokeVendor, converseVendor, novaVendor]) {
    t.test(`a session over ${vendor.protocol} with ${vendor.model ?? 'any model'}`, t => holdSession(t, GEMINI_CLI, vendor))
  }
  for (const vendor of [reasoningVendor, newClaudeVendor]) {
    t.test(`a session over ${vendor.protocol} with a subagent and a compaction`, t => holdDelegatedSession(t, DELEGATING, vendor))
  }
})
