/** The members with which an endpoint's protocol bounds the output. */
export interface BoundPlaces {
  /** Their paths: `generationConfig.maxOutputTokens`. */
  readonly paths: ReadonlySet<string>
  /**
   * Names of the members and of the objects around them, without case and separators: `generationconfig.maxoutputtokens`,
   * `generationconfig`.
   */
  readonly names: ReadonlySet<string>
}

/** @param paths of the members that bound the output: `generationConfig.maxOutputTokens` */
export function boundPlaces(paths: readonly string[]): BoundPlaces {
  return { paths: new Set(paths), names: new Set(paths.flatMap(namesAlong)) }
}

function namesAlong(path: string): string[] {
  const names = path.replace(/[_-]/g, '').toLowerCase().split('.')
  return names.map((_, at) => names.slice(0, at + 1).join('.'))
}
