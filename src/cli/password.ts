import { randomBytes } from 'node:crypto'
import type { ReadStream } from 'node:tty'
import { Command } from 'commander'
import { formatPasswordHash, hashPassword } from '../base/secrets/password.ts'
import { EXIT, EXIT_CODES } from '../process/exit.ts'

const HELP = `
Asks for a password twice without showing it. If standard input is not a terminal, reads its first
line. Prints the scrypt hash for console.users of gateway.yaml:

  console:
    listen: 127.0.0.1:8081
    users:
      - { name: ops, password: "scrypt:...", role: admin }

Examples:
  gateway password
  pass show gateway/ops | gateway password
${EXIT_CODES.replace('wrong option or configuration', 'wrong option, or an empty or too long password')}`

/** Characters. A shorter password causes a warning. */
const RECOMMENDED_LENGTH = 12
/** Bytes. The console's login accepts no more. */
const MAX_PASSWORD_BYTES = 1024

export function passwordCommand(): Command {
  return new Command('password')
    .description('Print the hash of a password for a console user.')
    .addHelpText('after', HELP)
    .action(async (_options: unknown, command: Command) => {
      const password = await (process.stdin.isTTY ? askTwice(process.stdin, command) : firstLine(process.stdin))
      const fault = passwordError(password)
      if (fault !== null) command.error(`error: ${fault}`, { exitCode: EXIT.usage })
      if ([...password].length < RECOMMENDED_LENGTH) {
        process.stderr.write(`warning: fewer than ${RECOMMENDED_LENGTH} characters can be guessed; a sentence is a good password\n`)
      }
      process.stdout.write(`${formatPasswordHash(await hashPassword(password, randomBytes))}\n`)
    })
}

function passwordError(password: string): string | null {
  if (password === '') return 'there is no password'
  return Buffer.byteLength(password) > MAX_PASSWORD_BYTES ? `a password has at most ${MAX_PASSWORD_BYTES} bytes` : null
}

async function askTwice(terminal: ReadStream, command: Command): Promise<string> {
  const password = await readHiddenLine(terminal, 'Password: ', command)
  // An invalid password is refused without asking for it again.
  if (passwordError(password) !== null) return password
  if (await readHiddenLine(terminal, 'Again: ', command) === password) return password
  return command.error('error: the two passwords differ; try again', { exitCode: EXIT.usage })
}

const ENTER = new Set(['\r', '\n', '\x04'])
const BACKSPACE = new Set(['\x08', '\x7f'])
const INTERRUPT = '\x03'
const KILL_LINE = '\x15'

function readHiddenLine(terminal: ReadStream, prompt: string, command: Command): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let typed: string[] = []
  const leave = (): void => {
    terminal.off('data', onData).off('end', onEnd)
    terminal.setRawMode(false).pause()
    process.stderr.write('\n')
  }
  const onEnd = (): void => {
    leave()
    resolve(typed.join(''))
  }
  const onData = (text: string): void => {
    for (const character of text) {
      if (ENTER.has(character)) return onEnd()
      if (character === INTERRUPT) {
        leave()
        return interrupted(command, reject)
      }
      if (character === KILL_LINE) typed = []
      else if (BACKSPACE.has(character)) typed.pop()
      else typed.push(character)
    }
  }
  terminal.setEncoding('utf8').setRawMode(true).on('data', onData).on('end', onEnd).resume()
  // Write the prompt only when the input is read, because the user may type at once.
  process.stderr.write(prompt)
  return promise
}

function interrupted(command: Command, reject: (error: unknown) => void): void {
  try {
    command.error('error: interrupted', { exitCode: EXIT.failed })
  } catch (error) {
    reject(error)
  }
}

/** The first line, without its line break. Stops reading when the line is longer than any password. */
async function firstLine(input: AsyncIterable<Buffer>): Promise<string> {
  let read = Buffer.alloc(0)
  for await (const chunk of input) {
    read = Buffer.concat([read, chunk])
    if (read.includes('\n') || read.length > MAX_PASSWORD_BYTES + 2) break
  }
  return /^[^\r\n]*/.exec(read.toString())![0]
}
