{% materialization seed, adapter='headrace' %}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set agate_table = load_agate_table() -%}
  {%- do store_result('agate_table', response='OK', agate_table=agate_table) -%}

  {% if existing is not none and not existing.is_table %}
    {% do exceptions.raise_compiler_error('The seed ' ~ this.render() ~ ' cannot be loaded: there is a ' ~ existing.type
        ~ ' of that name. Drop it, or give one of them another name (`alias`).') %}
  {% endif %}

  {{ run_hooks(pre_hooks) }}

  {%- set done = adapter.load_seed(
      target_relation, agate_table, config.get('column_types', {}),
      exists=(existing is not none), anew=should_full_refresh()) -%}
  {% call noop_statement('main', done.message, done.code, done.rows) %}
    -- {{ done.message }}
  {% endcall %}

  {% do persist_docs(target_relation, model) %}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
