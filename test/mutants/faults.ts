import { parseAst } from 'rolldown/parseAst'

/** One small fault of a source file: the text from `start` to `end` becomes `text`. Offsets are UTF-16 code units. */
export interface Fault {
  readonly start: number
  readonly end: number
  readonly text: string
}

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [name: string]: unknown
}

const OPERATORS: Readonly<Record<string, string>> = {
  '<': '<=', '<=': '<', '>': '>=', '>=': '>', '===': '!==', '!==': '===', '+': '-', '-': '+', '*': '/', '/': '*',
  '&&': '||', '||': '&&', '??': '&&', '+=': '-=', '-=': '+=',
}

/** All faults that can be seeded in a source: changed operators, conditions, numbers and booleans, and omitted calls. */
export function faultsOf(source: string): Fault[] {
  const faults: Fault[] = []
  const visit = (node: Node): void => {
    const fault = faultAt(node, source)
    if (fault !== null) faults.push(fault)
    for (const child of Object.values(node)) {
      for (const each of Array.isArray(child) ? child : [child]) if (isNode(each)) visit(each)
    }
  }
  visit(parseAst(source, { lang: 'ts' }) as unknown as Node)
  return faults
}

function faultAt({ type, start, end, ...node }: Node, source: string): Fault | null {
  switch (type) {
    case 'BinaryExpression': case 'LogicalExpression': case 'AssignmentExpression': {
      const operator = node['operator'] as string
      const text = OPERATORS[operator]
      const left = (node['left'] as Node).end
      const at = source.indexOf(operator, left)
      return text === undefined ? null : { start: at, end: at + operator.length, text }
    }
    case 'IfStatement': case 'ConditionalExpression': case 'WhileStatement': {
      const test = node['test'] as Node
      return { start: test.start, end: test.end, text: `!(${source.slice(test.start, test.end)})` }
    }
    case 'ExpressionStatement':
      return (node['expression'] as Node).type === 'CallExpression' ? { start, end, text: 'void 0' } : null
    case 'Literal': {
      const { value } = node
      if (typeof value === 'boolean') return { start, end, text: String(!value) }
      return typeof value === 'number' ? { start, end, text: String(value + 1) } : null
    }
    default: return null
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
    // Types are not executed.
    && !value.type.startsWith('TSType') && !value.type.startsWith('TSInterface')
}
