/**
 * @param name of a module beside the one that asks
 * @param base import.meta.url of that one
 * @returns the module's URL: `.ts` in a checkout, `.js` when built
 */
export function sibling(name: string, base: string): URL {
  return new URL(`./${name}${base.slice(base.lastIndexOf('.'))}`, base)
}
