{% materialization view, adapter='headrace' %}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='view') -%}

  {{ run_hooks(pre_hooks) }}

  {% if existing is not none and not existing.is_view %}
    {% do adapter.check_query(sql) %}
    {% do adapter.drop_relation(existing) %}
  {% endif %}

  {#-- Stream tables that read through a view are recomputed when it is replaced, so one that is as it was stays. --#}
  {% if existing is not none and existing.is_view and not should_full_refresh()
      and adapter.is_view_unchanged(target_relation, sql, headrace_view_digest(sql)) %}
    {% call noop_statement('main', 'UNCHANGED', 'UNCHANGED') %}
      {{ sql }}
    {% endcall %}
  {% else %}
    {% call statement('main') %}
      {{ get_create_view_as_sql(target_relation, sql) }}
    {% endcall %}
  {% endif %}

  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}


{% macro headrace__create_view_as(relation, sql) -%}
  create or replace view {{ relation }}
  {% if config.persist_column_docs() -%}
    ({{ get_persist_docs_column_list(model.columns, get_columns_in_query(sql)) }})
  {% endif %}
  {{ comment_clause() }}
  tblproperties ('dbt.digest' = '{{ headrace_view_digest(sql) }}')
  {%- if config.get('contract').enforced -%}
    {{ get_assert_columns_equivalent(sql) }}
  {%- endif %}
  as
    {{ sql }}
{% endmacro %}


{#-- What a view is made of, the columns that its query returns aside. --#}
{% macro headrace_view_digest(sql) -%}
  {%- set docs = [] -%}
  {%- if config.persist_column_docs() -%}
    {%- for name, column in model.columns.items() -%}{% do docs.append(name ~ column.description) %}{%- endfor -%}
  {%- endif -%}
  {{ return(local_md5(sql ~ comment_clause() ~ docs)) }}
{%- endmacro %}
