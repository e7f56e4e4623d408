import { join } from 'node:path'
import { KEY } from '../../support/gateway.ts'
import { PROMPT, SOLUTION, type Client } from './command-line.ts'

export const CLAUDE_CODE: Client = {
  command: 'claude',
  protocol: 'messages',
  args: () => ['-p', PROMPT, '--model', 'claude-sonnet-4-5', '--allowedTools', 'Read,Write,Bash'],
  env: ({ url }) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: KEY, CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' }),
  look: ({ directory }) => ({ calls: [
    { name: 'Read', input: { file_path: join(directory, 'question.txt') } },
    { name: 'Read', input: { file_path: join(directory, 'picture.png') } },
    { name: 'Bash', input: { command: 'wc -c < question.txt > counted.txt', description: 'Count' } },
  ] }),
  write: ({ directory }) => ({ calls: [{ name: 'Write', input: { file_path: join(directory, 'solution.txt'), content: SOLUTION } }] }),
}
