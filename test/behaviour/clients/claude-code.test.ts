import t from 'tap'
import { chatVendor, deepseekVendor, mistralVendor, openaiVendor } from '../../support/vendors/chat.ts'
import { generateVendor } from '../../support/vendors/generate.ts'
import { converseVendor, novaVendor } from '../../support/vendors/converse.ts'
import { invokeVendor, messagesVendor } from '../../support/vendors/messages.ts'
import { reasoningVendor } from '../../support/vendors/responses.ts'
import { CLAUDE_CODE } from './claude-code.ts'
import { PROMPT, TASK, holdDelegatedSession, holdSession, isMissing, type DelegatingClient } from './command-line.ts'

/** Compacts when the last response used more than 1 % of the context window. */
const DELEGATING: DelegatingClient = {
  ...CLAUDE_CODE,
  args: () => ['-p', PROMPT, '--model', 'claude-sonnet-4-5', '--allowedTools', 'Read,Write,Bash,Agent'],
  env: place => ({ ...CLAUDE_CODE.env(place), CLAUDE_CODE_AUTO_COMPACT_WINDOW: '100000', CLAUDE_AUTOCOMPACT_PCT_OVERRIDE: '1' }),
  delegate: () => ({ calls: [{ name: 'Agent', input: { description: 'Read it', prompt: TASK, subagent_type: 'general-purpose', run_in_background: false } }] }),
  compaction: /detailed summary of the conversation/,
}

t.test('Claude Code', { skip: isMissing('claude') }, async t => {
  for (const vendor of [messagesVendor, chatVendor, generateVendor, invokeVendor, converseVendor, novaVendor, mistralVendor, openaiVendor, deepseekVendor, reasoningVendor]) {
    t.test(`a session over ${vendor.protocol} with ${vendor.model ?? 'any model'}`, t => holdSession(t, CLAUDE_CODE, vendor))
  }
  for (const vendor of [mistralVendor, converseVendor]) {
    t.test(`a session over ${vendor.protocol} with a subagent and a compaction`, t => holdDelegatedSession(t, DELEGATING, vendor))
  }
})
