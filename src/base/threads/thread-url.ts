/**
 * The URL of the script `NAME.ts`, or of `NAME.js` in a build, which has an entry for each `*-thread.ts`.
 * @param base import.meta.url of the caller
 */
export function threadUrl(name: string, base: string): URL {
  return new URL(`./${name}${base.slice(base.lastIndexOf('.'))}`, base)
}
