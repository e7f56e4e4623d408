import { CommanderError } from 'commander'
import { EXIT } from '../process/exit.ts'
import { program } from './program.ts'

/** @returns the exit code */
async function run(argv: readonly string[]): Promise<number> {
  try {
    await program().parseAsync(argv)
    return EXIT.ok
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    // Commander has printed the error. Help and version succeed. A command of the gateway sets its own exit code.
    const isOurs = error.code === 'commander.error'
    return isOurs || error.exitCode === EXIT.ok ? error.exitCode : EXIT.usage
  }
}

// It is no error if a reader closes early, such as `head`. A full disk is an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit()
  process.stderr.write(`error: cannot write to standard output: ${error.message}\n`)
  process.exit(EXIT.failed)
})
// Ignore errors, because a closed stderr must not end a gateway that serves.
process.stderr.on('error', () => undefined)

process.exitCode = await run(process.argv)
