/**
 * The URL of the script of a thread: beside the module that starts it, in the sources and
 * in a build, which makes an entry of every `*-thread.ts`.
 *
 * @param name of the script, without its extension
 * @param base import.meta.url of the module that starts it
 * @returns the URL: `.ts` in a checkout, `.js` when built
 */
export function threadUrl(name: string, base: string): URL {
  return new URL(`./${name}${base.slice(base.lastIndexOf('.'))}`, base)
}
