import { InvalidArgumentError, Option } from 'commander'

/** `--config` of every command that has one. */
export function configOption(description: string): Option {
  return new Option('-c, --config <file>', description).default('gateway.yaml').argParser(fileName)
}

/** A variable that is not set leaves nothing in its place, as in `--config "$CONFIG"`. */
function fileName(text: string): string {
  if (text === '') throw new InvalidArgumentError('It takes the name of a file.')
  return text
}
