import t from 'tap'
import { deepseekVendor, mistralVendor, openaiVendor } from '../../support/vendors/chat.ts'
import { converseVendor, novaVendor } from '../../support/vendors/converse.ts'
import { generateVendor } from '../../support/vendors/generate.ts'
import { invokeVendor, messagesVendor, newClaudeVendor } from '../../support/vendors/messages.ts'
import { responsesVendor } from '../../support/vendors/responses.ts'
import type { Call } from '../../support/vendors/vendor.ts'
import { CODEX, PATCH } from './codex.ts'
import { PROMPT, TASK, holdDelegatedSession, holdSession, isMissing, type Client, type DelegatingClient } from './command-line.ts'

/** With a model whose tools are in namespaces, and which writes programs that call the tools. */
const CODEX_CODE_MODE: Client = {
  ...CODEX,
  args: place => CODEX.args(place).map(arg => arg === 'gpt-5.5' ? 'gpt-6.1-sol' : arg),
  look: () => ({ calls: [
    exec(`const seen = await tools.exec_command({ cmd: 'cat question.txt' }); await tools.exec_command({ cmd: 'wc -c < question.txt > counted.txt' }); text(seen.output); image((await tools.view_image({ path: 'picture.png' })).image_url)`),
    { name: 'list_agents', namespace: 'collaboration', input: {} },
  ] }),
  write: () => ({ calls: [exec(`text(await tools.apply_patch(${JSON.stringify(PATCH)}))`)] }),
}

function exec(program: string): Call {
  return { name: 'exec', isFreeform: true, input: { input: program } }
}

/** Compacts when a response has more tokens. */
const LIMIT = ['-c', 'model_auto_compact_token_limit=900']
const COMPACTION = /CONTEXT CHECKPOINT COMPACTION/

const DELEGATING: DelegatingClient = {
  ...CODEX_CODE_MODE,
  args: place => [...CODEX_CODE_MODE.args(place).slice(0, -1), ...LIMIT, PROMPT],
  delegate: () => ({ calls: [{ name: 'spawn_agent', namespace: 'collaboration', input: { task_name: 'reader', message: TASK, fork_turns: 'none' } }] }),
  collect: () => ({ calls: [{ name: 'wait_agent', namespace: 'collaboration', input: { timeout_ms: 60_000 } }] }),
  // The conversation of the agent is compacted too, and then no longer contains TASK.
  isAgent: text => !text.includes(PROMPT),
  compaction: COMPACTION,
}

t.test('Codex', { skip: isMissing('codex') }, async t => {
  for (const vendor of [responsesVendor, messagesVendor]) {
    t.test(`a session over ${vendor.protocol}`, t => holdSession(t, CODEX, vendor))
    t.test(`a session over ${vendor.protocol} in code mode`, t => holdSession(t, CODEX_CODE_MODE, vendor))
  }
  for (const vendor of [newClaudeVendor, generateVendor, mistralVendor, openaiVendor, deepseekVendor, invokeVendor, converseVendor, novaVendor]) {
    t.test(`a session over ${vendor.protocol} with ${vendor.model ?? 'any model'}`, t => holdSession(t, CODEX, vendor))
  }
  for (const vendor of [newClaudeVendor, deepseekVendor]) {
    t.test(`a session over ${vendor.protocol} with a subagent and a compaction`, t => holdDelegatedSession(t, DELEGATING, vendor))
  }
})
