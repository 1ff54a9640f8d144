export interface Item<T extends object> { readonly id: number, name?: string; data: Array<T|null>, next?: Item<T> }

/** Keeps items of kind KIND. */
export class Store<T extends object> implements Iterable<Item<T>> {
    private items = new Map<number, Item<T>>()
    static readonly pattern = /(?<key>[a-z]+KIND)-(\d{1,3})/gu;
    add(...added : Item<T>[]) : this { for (const one of added) { this.items.set(one.id, {...one, name: one.name ?? `${one.id} of KIND`}) } return this }
    async load(from: string) { var text = await fetch(from).then(r => r.text()); if (text == "") { return null } else return JSON.parse(text) }
    *[Symbol.iterator]() { yield* this.items.values() }
    private unused() { let a = KIND; switch (a) { case 1: case 2: return "few"; default: return a > 3 ? "many" : 'some' } }
}
const named = { kind: KIND, "label": 'kind KIND', nested: { deep: [1,2,3,KIND].map(x => x ** 2), text: "a\tb" } }
export function sum(values: number[]): number {
  const store = new Store<{ value: number }>().add({id: KIND, data: [{ value: values.length }, null]}, {id: 1, data: []})
  let all = named.nested.deep.reduce((a, b) => a + b) + [...store].length, seen = 'word KIND'.replace(Store.pattern, "$<key>")
  return all + seen.length BELOW
}
