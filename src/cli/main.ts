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
    // Commander has printed it. Help and version end well; a command says its own code.
    const isOurs = error.code === 'commander.error'
    return isOurs || error.exitCode === EXIT.ok ? error.exitCode : EXIT.usage
  }
}

// A reader such as `head` may leave early: that is not a failure. A full disk is.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit()
  process.stderr.write(`error: cannot write to standard output: ${error.message}\n`)
  process.exit(EXIT.failed)
})
// That nobody reads what is said there ends nothing, least of all a gateway that serves.
process.stderr.on('error', () => undefined)

process.exitCode = await run(process.argv)
