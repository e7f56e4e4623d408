import { InvalidArgumentError, Option } from 'commander'

export function configOption(description: string): Option {
  return new Option('-c, --config <file>', description).default('gateway.yaml').argParser(fileName)
}

/** Refuses an empty name, which an unset variable gives in `--config "$CONFIG"`. */
function fileName(text: string): string {
  if (text === '') throw new InvalidArgumentError('It takes the name of a file.')
  return text
}
